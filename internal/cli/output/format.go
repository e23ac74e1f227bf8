// Package output prints the results of commands as tables, JSON or YAML.
package output

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"k8s.io/client-go/util/jsonpath"
	"sigs.k8s.io/yaml"

	"isthmus.dev/isthmus/internal/cli/cmdutil"
)

// Format is the value of -o: a sort and what follows its equals sign.
type Format struct{ Name, template string }

// IsWhole reports whether all of an answer is printed, not lines about it.
func (o Format) IsWhole() bool { return o.Name == "json" || o.Name == "yaml" }

// ParseFormat reads the value of -o.
func ParseFormat(text string, allowed ...string) (Format, error) {
	sort, template, given := strings.Cut(text, "=")
	if sort != "jsonpath" && given {
		return Format{}, cmdutil.Usagef("-o %s: only jsonpath takes a template", text)
	}
	if sort == "" {
		sort = "table"
	}
	if err := cmdutil.OneOf("output", sort, allowed...); err != nil {
		return Format{}, err
	}
	o := Format{Name: sort, template: template}
	if sort == "jsonpath" {
		if template == "" {
			return Format{}, cmdutil.Usagef("-o jsonpath needs a template, such as jsonpath={.items[*].metadata.name}")
		}
		if _, err := o.path(); err != nil {
			return Format{}, err
		}
	}
	return o, nil
}

func (o Format) path() (*jsonpath.JSONPath, error) {
	path := jsonpath.New("output").AllowMissingKeys(true)
	if err := path.Parse(braced(o.template)); err != nil {
		return nil, cmdutil.Usagef("-o jsonpath: %w", err)
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

// Print writes a value as JSON, YAML or by jsonpath.
func (o Format) Print(to io.Writer, value any) error {
	switch o.Name {
	case "json":
		_, err := fmt.Fprintln(to, JSON(value, "  "))
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

// JSON is a value as JSON without escapes that only web pages need. What
// cannot be written is null.
func JSON(value any, indent string) string {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", indent)
	if err := encoder.Encode(value); err != nil {
		return "null"
	}
	return strings.TrimRight(out.String(), "\n")
}
