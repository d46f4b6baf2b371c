#!/usr/bin/env bash
# Makes, in the directory given, an authority (ca) and certificates of a server
# (server, for localhost) and a client (client).
set -euo pipefail
cd "$1"

key=(-newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes)

openssl req -x509 "${key[@]}" -keyout ca.key -out ca.crt -days 365 -subj "/CN=rondo CI" \
	-addext basicConstraints=critical,CA:TRUE -addext keyUsage=critical,keyCertSign,cRLSign

issue() { # name, common name, alternative names
	openssl req "${key[@]}" -keyout "$1.key" -out "$1.csr" -subj "/CN=$2"
	openssl x509 -req -in "$1.csr" -CA ca.crt -CAkey ca.key -CAcreateserial -days 90 -out "$1.crt" -extfile <(
		echo "subjectAltName=$3"
		echo extendedKeyUsage=serverAuth,clientAuth
		echo keyUsage=critical,digitalSignature
		echo basicConstraints=critical,CA:FALSE
		# testssl.sh wants a way to revoke. Nobody looks there.
		echo crlDistributionPoints=URI:http://127.0.0.1/ca.crl
	)
}
issue server localhost DNS:localhost,IP:127.0.0.1
issue client client DNS:client.test
