package kube

const (
	placeFile    = "file"
	placeCluster = "cluster"
	placeUser    = "user"
	placeContext = "context"
)

// verdict is the rule of one field: allowed (zero), without effect, or refused with a code and what to do instead.
type verdict struct {
	code    Code
	advice  string
	ignored bool
}

const (
	adviceFile   = "files are never opened; put the content inline: kubectl config view --raw --minify --flatten does it"
	adviceAs     = "impersonation is refused; give the credentials of the account itself"
	adviceMinify = "this field is not accepted; kubectl config view --raw --minify --flatten shows what is needed, remove the rest"
)

// judge is the list of what a kubeconfig may hold (S43, S45, B-K1 to B-K10). What is not named here is refused.
func judge(place, name string) verdict {
	switch place {
	case placeCluster:
		return judgeCluster(name)
	case placeUser:
		return judgeUser(name)
	case placeContext:
		return judgeContext(name)
	default:
		return judgeFile(name)
	}
}

func judgeFile(name string) verdict {
	switch name {
	case "apiVersion", "kind", "clusters", "users", "contexts", "current-context":
		return verdict{}
	case "preferences":
		return verdict{ignored: true}
	}
	return verdict{code: CodeUnknownField, advice: adviceMinify}
}

func judgeCluster(name string) verdict {
	switch name {
	case "server", "certificate-authority-data", "tls-server-name", "insecure-skip-tls-verify":
		return verdict{}
	case "certificate-authority":
		return verdict{code: CodeFileReference, advice: adviceFile}
	case "proxy-url":
		return verdict{code: CodeProxy, advice: "proxies are refused; the hub connects to the API server directly"}
	}
	return verdict{code: CodeUnknownField, advice: adviceMinify}
}

func judgeUser(name string) verdict {
	switch name {
	case "token", "client-certificate-data", "client-key-data":
		return verdict{}
	case "exec":
		return verdict{code: CodeExec, advice: "nothing is ever executed; use a token or a client certificate as inline data"}
	case "auth-provider":
		return verdict{code: CodeAuthProvider, advice: "auth providers are refused; use a token or a client certificate as inline data"}
	case "tokenFile", "client-certificate", "client-key":
		return verdict{code: CodeFileReference, advice: adviceFile}
	case "as", "as-uid", "as-groups", "as-user-extra":
		return verdict{code: CodeImpersonation, advice: adviceAs}
	case "username", "password":
		return verdict{code: CodePassword, advice: "basic authentication is refused; use a token or a client certificate as inline data"}
	}
	return verdict{code: CodeUnknownField, advice: adviceMinify}
}

func judgeContext(name string) verdict {
	switch name {
	case "cluster", "user":
		return verdict{}
	case "namespace":
		return verdict{ignored: true}
	}
	return verdict{code: CodeUnknownField, advice: adviceMinify}
}
