module github.com/rondo-go/rondo/bench

go 1.24.0

require (
	github.com/HdrHistogram/hdrhistogram-go v1.1.2
	github.com/alecthomas/kong v1.12.1
	github.com/cloudwego/netpoll v0.7.2
	github.com/gobwas/ws v1.4.0
	github.com/gorilla/websocket v1.5.3
	github.com/lesismal/llib v1.2.4
	github.com/lesismal/nbio v1.6.12
	github.com/lxzan/gws v1.8.9
	github.com/panjf2000/gnet/v2 v2.10.0
	github.com/rondo-go/rondo v0.0.0
	github.com/tidwall/evio v1.0.8
	github.com/tidwall/redcon v1.6.2
	github.com/valyala/fasthttp v1.62.0
	github.com/xtaci/gaio v1.2.34
	golang.org/x/sys v0.35.0
	gonum.org/v1/gonum v0.16.0
	gonum.org/v1/plot v0.16.0
)

require (
	codeberg.org/go-fonts/liberation v0.5.0 // indirect
	codeberg.org/go-latex/latex v0.1.0 // indirect
	codeberg.org/go-pdf/fpdf v0.10.0 // indirect
	git.sr.ht/~sbinet/gg v0.6.0 // indirect
	github.com/ajstarks/svgo v0.0.0-20211024235047-1546f124cd8b // indirect
	github.com/andybalholm/brotli v1.1.1 // indirect
	github.com/bytedance/gopkg v0.1.1 // indirect
	github.com/campoy/embedmd v1.0.0 // indirect
	github.com/cloudwego/gopkg v0.1.4 // indirect
	github.com/dolthub/maphash v0.1.0 // indirect
	github.com/gobwas/httphead v0.1.0 // indirect
	github.com/gobwas/pool v0.2.1 // indirect
	github.com/golang/freetype v0.0.0-20170609003504-e2365dfdc4a0 // indirect
	github.com/kavu/go_reuseport v1.5.0 // indirect
	github.com/klauspost/compress v1.18.0 // indirect
	github.com/panjf2000/ants/v2 v2.12.1 // indirect
	github.com/pmezard/go-difflib v1.0.0 // indirect
	github.com/tidwall/btree v1.1.0 // indirect
	github.com/tidwall/match v1.1.1 // indirect
	github.com/valyala/bytebufferpool v1.0.0 // indirect
	go.uber.org/multierr v1.11.0 // indirect
	go.uber.org/zap v1.28.0 // indirect
	golang.org/x/crypto v0.41.0 // indirect
	golang.org/x/image v0.30.0 // indirect
	golang.org/x/sync v0.16.0 // indirect
	golang.org/x/text v0.28.0 // indirect
	gopkg.in/natefinch/lumberjack.v2 v2.2.1 // indirect
)

replace github.com/rondo-go/rondo => ../
