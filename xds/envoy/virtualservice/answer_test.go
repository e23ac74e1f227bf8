package virtualservice

import (
	"testing"

	"google.golang.org/protobuf/encoding/protojson"
	networking "istio.io/api/networking/v1"
)

// TestK66RedirectsNameNoPortThatTheSchemeHas: "http://host:80/" becomes "http://host/", as with Istio.
func TestK66RedirectsNameNoPortThatTheSchemeHas(t *testing.T) {
	for name, c := range map[string]struct {
		redirect string
		from     uint16
		tls      bool
		want     uint32
	}{
		"80 of http":               {`{"port": 80}`, 8080, false, 0},
		"80 of https":              {`{"port": 80}`, 443, true, 80},
		"443 of http":              {`{"port": 443}`, 80, false, 443},
		"443 of https":             {`{"port": 443, "scheme": "https"}`, 80, false, 0},
		"443 of TLS":               {`{"port": 443}`, 8443, true, 0},
		"80 of http from TLS":      {`{"port": 80, "scheme": "http"}`, 443, true, 0},
		"another port":             {`{"port": 8443, "scheme": "https"}`, 80, false, 8443},
		"the port of the request":  {`{"derivePort": "FROM_REQUEST_PORT"}`, 8080, false, 8080},
		"80 of the request":        {`{"derivePort": "FROM_REQUEST_PORT"}`, 80, false, 0},
		"80 of the request, https": {`{"derivePort": "FROM_REQUEST_PORT", "scheme": "https"}`, 80, false, 80},
		"the port of the scheme":   {`{"derivePort": "FROM_PROTOCOL_DEFAULT", "scheme": "https"}`, 80, false, 0},
	} {
		t.Run(name, func(t *testing.T) {
			in := &networking.HTTPRedirect{}
			if err := protojson.Unmarshal([]byte(c.redirect), in); err != nil {
				t.Fatal(err)
			}
			out, err := Redirect(in, c.from, c.tls)
			if err != nil || out.Redirect.GetPortRedirect() != c.want {
				t.Errorf("the redirect is to port %d, want %d; %v", out.Redirect.GetPortRedirect(), c.want, err)
			}
		})
	}
}
