module github.com/rondo-go/rondo

go 1.24.0

require (
	github.com/BurntSushi/toml v1.5.0
	github.com/HdrHistogram/hdrhistogram-go v1.1.2
	github.com/KimMachineGun/automemlimit v0.7.4
	github.com/alecthomas/kong v1.12.1
	github.com/coreos/go-systemd/v22 v22.5.0
	github.com/klauspost/compress v1.18.0
	github.com/pires/go-proxyproto v0.8.0
	github.com/yuin/gopher-lua v1.1.2
	golang.org/x/sys v0.35.0
)

require github.com/pbnjay/memory v0.0.0-20210728143218-7b4eea64cf58 // indirect
