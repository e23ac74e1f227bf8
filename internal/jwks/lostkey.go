package jwks

// LostKey is a key set in the place of one that is not known, so that no token of its issuer
// is valid. The private key does not exist any more.
const LostKey = `{"keys":[{"kty":"RSA","alg":"RS256","e":"AQAB","n":"` +
	"uYGGnA5mmbtERdPysAXX3N2zo38mZI0ihoc0Vi1FE8yfat-vLm3d9n1Sd-6z_y_WRkLAO9hJBGMEjyGcqG41tQ3h9R-A2uqhgrew0u2lXbUHQT" +
	"qqpBStgLIdOG8tMyqOIrKySMRIfsqH7Kw9RIOx-10d8zPy9XLfIljII3gvxTDPnfp1j04LbGHiLyFTinLdESysMIu7rwA9wSGssfMPgk0EMnUO" +
	"na4C8fyoKJ2JeThQ-zpbrfuVLaGgOQbquXWbtbdEODBkiYhDjTS9QKt07Qk5E7PFuzOB7hystAuW_eO2VwyRi8pwchigl7mO46bSRfj2OMJjbM" +
	"dhvxr2Z7LtHQ" +
	`"}]}`
