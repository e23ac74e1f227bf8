// Command coredns answers as CoreDNS does with the settings of the suite: for foo.bar.com it
// says from where it was asked, as the plugin whoami, and it refuses other names.
package main

import (
	"log"
	"net"

	"github.com/miekg/dns"
)

func main() {
	dns.HandleFunc("foo.bar.com.", whoami)
	log.Fatal(dns.ListenAndServe(":53", "udp", nil))
}

// whoami has the address of the client as an additional record.
func whoami(w dns.ResponseWriter, asked *dns.Msg) {
	answer := new(dns.Msg).SetReply(asked)
	answer.Authoritative = true
	client := w.RemoteAddr().(*net.UDPAddr).IP
	header := dns.RR_Header{Name: asked.Question[0].Name, Rrtype: dns.TypeA, Class: dns.ClassINET}
	answer.Extra = append(answer.Extra, &dns.A{Hdr: header, A: client})
	if err := w.WriteMsg(answer); err != nil {
		log.Print(err)
	}
}
