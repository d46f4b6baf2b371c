# The program rondo, and beside it only the certificates of public authorities. What to know
# before running it is in docs/operators.md, "Containers". .ci/containers tries it.
#
#	docker build -t rondo .
#	docker run --rm -p 127.0.0.1:6379:6379 rondo redis --addr :6379 --requirepass secret
#	docker run --rm -p 127.0.0.1:8080:8080 -v "$PWD:/site:ro" rondo http --addr :8080 --dir /site

FROM --platform=$BUILDPLATFORM golang:1.26 AS build
ARG TARGETOS TARGETARCH VERSION COMMIT DATE
WORKDIR /source
COPY go.mod go.sum ./
RUN go mod download
COPY . .
RUN CGO_ENABLED=0 GOOS=$TARGETOS GOARCH=$TARGETARCH go build -trimpath -buildvcs=false -ldflags "-s -w -X main.version=$VERSION -X main.commit=$COMMIT -X main.date=$DATE" -o /out/rondo ./cmd/rondo

FROM scratch
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/ca-certificates.crt
COPY --from=build /out/rondo /rondo
USER 65532:65532
EXPOSE 6379 8080
HEALTHCHECK --interval=10s --timeout=5s --start-period=2s CMD ["/rondo", "ping", "redis://127.0.0.1:6379"]
ENTRYPOINT ["/rondo"]
CMD ["redis", "--addr", ":6379"]
