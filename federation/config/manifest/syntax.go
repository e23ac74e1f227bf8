package manifest

import (
	"regexp"
	"strconv"
	"strings"
)

var yamlLine = regexp.MustCompile(`line (\d+): `)

// syntax reports why the text is not YAML.
func (p *parser) syntax(c document, err error) {
	message, line := located(err)
	lines := strings.Split(c.text, "\n")
	if isOfParser(message) {
		line = lineOfProblem(lines, line, message)
	}
	line = max(1, min(line, len(lines)))
	for _, l := range []int{line, line + 1, line - 1} { // the library is off by one at times
		if l >= 1 && l <= len(lines) && tabIn(lines[l-1]) >= 0 {
			p.report(spot{c.line + l - 1, tabIn(lines[l-1]) + 1}, "", Tab, "a tab is not indentation: write spaces")
			return
		}
	}
	text := lines[line-1]
	at := spot{c.line + line - 1, len(text) - len(strings.TrimLeft(text, " ")) + 1}
	if strings.Contains(message, "max depth") {
		p.report(at, "", TooDeep, "values are nested deeper than the %d levels allowed", p.limits.Depth)
		return
	}
	p.report(at, "", Syntax, "%s", message)
}

// located is what the library says, and the line that it names; 0: none.
func located(err error) (message string, line int) {
	message = strings.TrimPrefix(err.Error(), "yaml: ")
	m := yamlLine.FindStringSubmatch(message)
	if m == nil {
		return message, 0
	}
	line, _ = strconv.Atoi(m[1]) // it is a number
	return strings.Replace(message, m[0], "", 1), line
}

// isOfParser reports whether the library's parser says so, which counts lines from 0, and
// not its scanner, which counts from 1.
func isOfParser(message string) bool {
	for _, of := range []string{"<document start>", "node content", "'-' indicator", "key", "',' or ']'", "',' or '}'"} {
		if message == "did not find expected "+of {
			return true
		}
	}
	return false
}

// lineOfProblem is the line, from 1, at which the parser could not go on. The parser
// names, from 0, the line in which the mapping or list around it begins, except where
// that is the first line of the text. Therefore what begins there is read once more.
func lineOfProblem(lines []string, named int, message string) int {
	begins := named + 1
	if named == 0 || isEnd(lines, begins) {
		return named // where the text ends too soon
	}
	rest := decode(strings.Join(lines[named:], "\n"))
	if rest.err == nil {
		return begins
	}
	again, further := located(rest.err)
	problem := begins + further
	if again != message || isEnd(lines, problem) {
		return begins // what begins there never ends
	}
	return problem
}

// isEnd reports whether nothing is in the line and behind it.
func isEnd(lines []string, line int) bool {
	return line > len(lines) || strings.TrimSpace(strings.Join(lines[line-1:], "")) == ""
}
