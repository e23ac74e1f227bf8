package settings

import (
	"strings"
	"testing"
)

func TestR45SettingsOfHostsAndOriginsAreChecked(t *testing.T) {
	for text, want := range map[string]string{
		"graphql: {allowedHosts: [\"https://mesh.example.com\"]}":         "graphql.allowedHosts[0]",
		"graphql: {allowedHosts: [\"mesh.example.com:8080\"]}":            "graphql.allowedHosts[0]",
		"graphql: {allowedOrigins: [\"*\"]}":                              "graphql.allowedOrigins[0]",
		"graphql: {allowedOrigins: [\"https://*.example.com\"]}":          "graphql.allowedOrigins[0]",
		"graphql: {allowedOrigins: [\"https://dashboard.example.com/\"]}": "graphql.allowedOrigins[0]",
	} {
		c, err := parseConfig("config.yaml", []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		if err := c.GraphQL.checkHosts(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s gets %v", text, err)
		}
	}
}
