package graphiql

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"io"
	"net/http"
	"path"
	"strconv"
	"strings"
)

//go:embed dist
var dist embed.FS

// asset is one file as it is served. The body of a packed one is gzip; clients
// that do not take gzip get it unpacked.
type asset struct {
	contentType string
	etag        string
	body        []byte
	packed      bool
}

// bundled returns the assets of the committed bundle by name.
func bundled() map[string]asset {
	entries, err := dist.ReadDir("dist")
	if err != nil {
		panic("reading the embedded GraphiQL assets: " + err.Error()) // Impossible: embedding fails at build time.
	}
	assets := make(map[string]asset, len(entries)+1)
	for _, entry := range entries {
		name, packed := strings.CutSuffix(entry.Name(), ".gz")
		body, err := dist.ReadFile(path.Join("dist", entry.Name()))
		if !packed || err != nil {
			continue
		}
		found := plain(name, body)
		found.packed = true
		assets[name] = found
	}
	return assets
}

func plain(name string, body []byte) asset {
	sum := sha256.Sum256(body)
	return asset{contentType: contentType(name), etag: hex.EncodeToString(sum[:12]), body: body}
}

func contentType(name string) string {
	switch path.Ext(name) {
	case ".js":
		return "text/javascript; charset=utf-8"
	case ".css":
		return "text/css; charset=utf-8"
	case ".html":
		return "text/html; charset=utf-8"
	case ".ttf":
		return "font/ttf"
	default:
		return "text/plain; charset=utf-8"
	}
}

func (a asset) serve(w http.ResponseWriter, r *http.Request) {
	header, etag, body := w.Header(), a.etag, a.body
	header.Set("Cache-Control", "no-cache")
	if a.packed {
		header.Set("Vary", "Accept-Encoding")
	}
	switch {
	case a.packed && acceptsGzip(r):
		header.Set("Content-Encoding", "gzip")
		etag += "-gz"
	case a.packed:
		body = unpack(a.body)
	}
	header.Set("ETag", strconv.Quote(etag))
	if strings.Contains(r.Header.Get("If-None-Match"), strconv.Quote(etag)) {
		header.Del("Content-Encoding")
		w.WriteHeader(http.StatusNotModified)
		return
	}
	header.Set("Content-Type", a.contentType)
	header.Set("Content-Length", strconv.Itoa(len(body)))
	if r.Method == http.MethodGet {
		_, _ = w.Write(body)
	}
}

func acceptsGzip(r *http.Request) bool {
	for part := range strings.SplitSeq(r.Header.Get("Accept-Encoding"), ",") {
		coding, params, _ := strings.Cut(part, ";")
		_, weight, weighted := strings.Cut(params, "=")
		refused := weighted && strings.Trim(weight, " 0.") == ""
		if strings.TrimSpace(coding) == "gzip" && !refused {
			return true
		}
	}
	return false
}

func unpack(packed []byte) []byte {
	reader, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		panic("unpacking an embedded GraphiQL asset: " + err.Error()) // Impossible: a test compares every asset with its checksum.
	}
	body, err := io.ReadAll(reader)
	if err != nil {
		panic("unpacking an embedded GraphiQL asset: " + err.Error())
	}
	return body
}
