// Package pemtext reads texts of several PEM blocks, and makes pools of certificates.
package pemtext

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"iter"
)

// Blocks are the blocks of the text. It passes over what is around them.
func Blocks(text []byte) iter.Seq[*pem.Block] {
	return func(yield func(*pem.Block) bool) {
		for {
			block, rest := pem.Decode(text)
			if block == nil || !yield(block) {
				return
			}
			text = rest
		}
	}
}

// Whole are the blocks of a text that is to have nothing else behind them: what else there is, other
// than space, is the last block, which has no type.
func Whole(text []byte) iter.Seq[*pem.Block] {
	return func(yield func(*pem.Block) bool) {
		for rest := bytes.TrimSpace(text); len(rest) > 0; rest = bytes.TrimSpace(rest) {
			var block *pem.Block
			block, rest = pem.Decode(rest)
			if block == nil {
				yield(&pem.Block{})
				return
			}
			if !yield(block) {
				return
			}
		}
	}
}

// Pool has these certificates.
func Pool(certificates []*x509.Certificate) *x509.CertPool {
	pool := x509.NewCertPool()
	for _, c := range certificates {
		pool.AddCert(c)
	}
	return pool
}
