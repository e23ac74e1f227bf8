package transport

import "net/http"

// Refuse answers a request that does not get as far as a Handler the way a Handler
// would: as JSON with a code and the ID of the request.
func Refuse(w http.ResponseWriter, r *http.Request, status int, code Code, text string) {
	id := newRequestID()
	setAnswerHeaders(w.Header(), id)
	accepts, _ := negotiate(r.Header.Values("Accept"))
	reply := replier{w: w, mediaType: accepts.mediaType, id: id}
	reply.fault(refuse(status, code, text))
}
