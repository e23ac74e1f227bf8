package docs

import (
	"fmt"
	"os/exec"
	"testing"
)

// nginxConfig is the server of the public host around the blocks of the page.
const nginxConfig = `(
echo "pid $PWD/nginx.pid; error_log stderr; events {}"
echo "http { access_log off;"
cat map.conf
echo "server { listen 443 ssl; server_name mesh.example.com; ssl_certificate $PWD/mesh.crt; ssl_certificate_key $PWD/mesh.key;"
cat location.conf
sed 's|location /graphql|location /graphiql|' location.conf
echo "}}"
) > nginx.conf
mkdir -p /var/lib/nginx
`

// TestU74TheHubIsBehindNginxAsInTheGuide follows the page about reverse proxies with an nginx that terminates TLS for a public
// host: queries, changes, streams of both kinds and the editor come through, those of other sites do not.
func TestU74TheHubIsBehindNginxAsInTheGuide(t *testing.T) {
	t.Parallel()
	const page = "reverse-proxies.md"
	nginx, err := exec.LookPath("nginx")
	if err != nil {
		t.Fatalf("there is no nginx: %v; run make tools", err)
	}
	m := newMachine(t)
	m.installs(t)
	m.withOwn("IP:127.0.0.1", "IP:127.0.0.1,DNS:hub.internal")
	m.types("echo 127.0.0.1 hub.internal mesh.example.com >> /etc/hosts")
	m.writes(t, "graphql.yaml", page, "yaml", "allowedHosts")
	m.types("cat graphql.yaml | sudo tee -a /etc/isthmus/isthmus.yaml\nsudo systemctl restart isthmus\nisthmus status")
	m.reads(t, page, "## The hub behind a reverse proxy", "## A dashboard on another origin")
	m.types(`openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 1 -subj /CN=mesh.example.com \
  -addext subjectAltName=DNS:mesh.example.com -keyout mesh.key -out mesh.crt`)
	m.writes(t, "map.conf", page, "nginx", "map $http_upgrade")
	m.writes(t, "location.conf", page, "nginx", "proxy_pass")
	m.types(nginxConfig + nginx + " -e stderr -c $PWD/nginx.conf -g 'daemon off;' >> $L/nginx.log 2>&1 &")
	const public = "https://mesh.example.com"
	asks := func(path, args, want string) {
		m.types(fmt.Sprintf("again %q", "curl -s --cacert mesh.crt "+public+path+" "+args+" | grep -i "+want))
	}
	const post = "-H 'Content-Type: application/json' -d "
	const follow = `'{"query":"subscription { changes(filter: {kinds: [CLUSTER]}) { cursor } }"}'`
	asks("/graphql", "-H 'Origin: "+public+"' "+post+`'{"query":"{ clusters { totalCount } }"}'`, `'{"data":{"clusters":{"totalCount":1}}}'`)
	asks("/graphql", "-H 'Origin: https://other.example' "+post+`'{"query":"{ hub { id } }"}'`, "FORBIDDEN")
	asks("/graphql", "-N --max-time 3 -H 'Accept: text/event-stream' "+post+follow, "'data: .*cursor'")
	asks("/graphql", "-i --max-time 3 --http1.1 -H 'Origin: "+public+"' -H 'Connection: Upgrade' -H 'Upgrade: websocket' -H 'Sec-WebSocket-Version: 13' "+
		"-H 'Sec-WebSocket-Key: MTIzNDU2Nzg5MDEyMzQ1Ng==' -H 'Sec-WebSocket-Protocol: graphql-transport-ws'", "'101 Switching Protocols'")
	asks("/graphiql", "", "'<title>'")
	m.types(`cat > change.json <<'END'
{"query": "mutation { apply(input: {manifests: [\"{apiVersion: isthmus.dev/v1, kind: MeshSettings, metadata: {name: default}, spec: {}}\"]}) { userErrors { message } } }"}
END`)
	asks("/graphql", post+"@change.json", `'"userErrors":\[\]'`)
	m.types("isthmus history | grep -w proxy") // its certificate is the author
	dashboard := "-i -H 'Origin: https://dashboard.example.com' "
	asks("/graphql", dashboard+"-X OPTIONS -H 'Access-Control-Request-Method: POST' -H 'Access-Control-Request-Headers: content-type'",
		"'access-control-allow-origin: https://dashboard.example.com'")
	asks("/graphql", dashboard+post+`'{"query":"{ hub { id } }"}'`, "'access-control-expose-headers: .*Isthmus-Revision'")
	m.types("kill $(cat nginx.pid)")
	m.do(t, true)
}
