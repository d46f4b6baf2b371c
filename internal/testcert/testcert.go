// Package testcert makes certificates for tests and examples: an authority, and
// what it signs. Do not trust them anywhere else.
package testcert

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"time"
)

// An Authority signs certificates.
type Authority struct {
	Cert *x509.Certificate
	key  crypto.Signer
}

// Kind is the kind of a key.
type Kind int

const (
	ECDSA Kind = iota // P-256
	RSA               // 2048 bits
)

// New makes an authority.
func New(name string) *Authority {
	a := &Authority{key: newKey(ECDSA)}
	template := template(name)
	template.IsCA = true
	template.BasicConstraintsValid = true
	template.KeyUsage = x509.KeyUsageCertSign | x509.KeyUsageCRLSign
	a.Cert = sign(template, template, a.key.Public(), a.key)
	return a
}

// Pool is of the authority alone.
func (a *Authority) Pool() *x509.CertPool {
	p := x509.NewCertPool()
	p.AddCert(a.Cert)
	return p
}

// Issue makes a certificate for servers and clients of these names, which are host
// names or IP addresses.
func (a *Authority) Issue(kind Kind, names ...string) tls.Certificate {
	template := template(names[0])
	for _, n := range names {
		if ip := net.ParseIP(n); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, n)
		}
	}
	template.KeyUsage = x509.KeyUsageDigitalSignature
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}
	if kind == RSA {
		template.KeyUsage |= x509.KeyUsageKeyEncipherment
	}
	key := newKey(kind)
	leaf := sign(template, a.Cert, key.Public(), a.key)
	return tls.Certificate{Certificate: [][]byte{leaf.Raw}, PrivateKey: key, Leaf: leaf}
}

// PEM is the certificate and its key, as files hold them.
func PEM(c tls.Certificate) (cert, key []byte) {
	der, err := x509.MarshalPKCS8PrivateKey(c.PrivateKey)
	must(err)
	return CertPEM(c.Leaf), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})
}

// CertPEM is a certificate as a file holds it.
func CertPEM(c *x509.Certificate) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Raw})
}

func newKey(kind Kind) crypto.Signer {
	if kind == RSA {
		key, err := rsa.GenerateKey(rand.Reader, 2048)
		must(err)
		return key
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(err)
	return key
}

func template(name string) *x509.Certificate {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	must(err)
	return &x509.Certificate{
		SerialNumber: serial,
		Subject:      pkix.Name{CommonName: name},
		// Wide enough for simulated clocks too, which begin with the year 2000.
		NotBefore: time.Date(1999, 1, 1, 0, 0, 0, 0, time.UTC),
		NotAfter:  time.Date(2099, 1, 1, 0, 0, 0, 0, time.UTC),
	}
}

func sign(template, parent *x509.Certificate, key any, by crypto.Signer) *x509.Certificate {
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key, by)
	must(err)
	c, err := x509.ParseCertificate(der)
	must(err)
	return c
}

// must panics: there is no reason for these things to fail.
func must(err error) {
	if err != nil {
		panic(fmt.Sprintf("testcert: %v", err))
	}
}
