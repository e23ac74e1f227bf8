package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"k8s.io/client-go/util/jsonpath"
	"sigs.k8s.io/yaml"
)

// output is the value of -o: a sort and what follows its equals sign.
type output struct{ sort, template string }

// isWhole tells that all of an answer is printed, not lines about it.
func (o output) isWhole() bool { return o.sort == "json" || o.sort == "yaml" }

func parseOutput(text string, allowed ...string) (output, error) {
	sort, template, given := strings.Cut(text, "=")
	if sort != "jsonpath" && given {
		return output{}, usagef("-o %s: only jsonpath takes a template", text)
	}
	if sort == "" {
		sort = "table"
	}
	if err := oneOf("output", sort, allowed...); err != nil {
		return output{}, err
	}
	o := output{sort: sort, template: template}
	if sort == "jsonpath" {
		if template == "" {
			return output{}, usagef("-o jsonpath needs a template, such as jsonpath={.items[*].metadata.name}")
		}
		if _, err := o.path(); err != nil {
			return output{}, err
		}
	}
	return o, nil
}

func (o output) path() (*jsonpath.JSONPath, error) {
	path := jsonpath.New("output").AllowMissingKeys(true)
	if err := path.Parse(braced(o.template)); err != nil {
		return nil, usagef("-o jsonpath: %w", err)
	}
	return path, nil
}

// braced takes the short forms of a template that kubectl takes.
func braced(template string) string {
	if strings.Contains(template, "{") {
		return template
	}
	if !strings.HasPrefix(template, ".") && !strings.HasPrefix(template, "[") {
		template = "." + template
	}
	return "{" + template + "}"
}

// printValue writes a value as JSON, YAML or by jsonpath.
func (o output) printValue(to io.Writer, value any) error {
	switch o.sort {
	case "json":
		_, err := fmt.Fprintln(to, jsonText(value, "  "))
		return err
	case "yaml":
		text, err := yaml.Marshal(value)
		if err != nil {
			return fmt.Errorf("writing YAML: %w", err)
		}
		_, err = to.Write(text)
		return err
	}
	path, err := o.path()
	if err != nil {
		return err
	}
	if err := path.Execute(to, value); err != nil {
		return fmt.Errorf("-o jsonpath: %w; -o json shows what there is", err)
	}
	return nil
}

// jsonText is a value as JSON without escapes that only web pages need. What
// cannot be written is null.
func jsonText(value any, indent string) string {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", indent)
	if err := encoder.Encode(value); err != nil {
		return "null"
	}
	return strings.TrimRight(out.String(), "\n")
}

func quotedList(words []string) string {
	quoted := make([]string, len(words))
	for i, w := range words {
		quoted[i] = fmt.Sprintf("%q", w)
	}
	return strings.Join(quoted, ", ")
}
