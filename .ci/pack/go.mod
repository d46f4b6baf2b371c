module github.com/rondo-go/rondo/ci/pack

go 1.24.0

require github.com/CycloneDX/cyclonedx-go v0.9.2
