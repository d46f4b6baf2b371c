package metrics

import (
	"strconv"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/rondo-go/rondo/httpd"
	"github.com/rondo-go/rondo/websocket"
)

// HTTP returns a collector of the counters of a server.
func HTTP(s *httpd.Server) prometheus.Collector { return httpServer{s} }

type httpServer struct{ *httpd.Server }

var (
	httpConns     = gauge("rondo_http_open_connections", "Connections of the HTTP server, without those that were taken over.")
	httpRequests  = counter("rondo_http_requests_total", "Requests that have begun, by the version of HTTP.", "version")
	httpProgress  = gauge("rondo_http_requests_in_progress", "Requests that have begun and not ended.")
	httpAnswers   = counter("rondo_http_responses_total", "Requests of HTTP/1 that have ended, by the class of their status; none if the handler has panicked before.", "class")
	httpMalformed = counter("rondo_http_malformed_requests_total", "Connections that ended because of what they sent.")
	httpHijacked  = counter("rondo_http_hijacked_connections_total", "Connections that were taken over, as by WebSocket.")
	httpBytesIn   = counter("rondo_http_request_body_bytes_total", "Bytes of the bodies of HTTP/1 requests.")
	httpBytesOut  = counter("rondo_http_response_body_bytes_total", "Bytes of the bodies of HTTP/1 responses.")
)

func (httpServer) Describe(to chan<- *prometheus.Desc) {
	describe(to, httpConns, httpRequests, httpProgress, httpAnswers, httpMalformed, httpHijacked, httpBytesIn, httpBytesOut)
}

func (c httpServer) Collect(to chan<- prometheus.Metric) {
	s := c.Stats()
	httpConns.send(to, float64(s.Conns))
	httpRequests.send(to, float64(s.Requests-s.HTTP2), "1")
	httpRequests.send(to, float64(s.HTTP2), "2")
	httpProgress.send(to, float64(s.InProgress))
	for class, n := range s.Answers {
		name := "none"
		if class > 0 {
			name = strconv.Itoa(class) + "xx"
		}
		httpAnswers.send(to, float64(n), name)
	}
	httpMalformed.send(to, float64(s.Malformed))
	httpHijacked.send(to, float64(s.Hijacked))
	httpBytesIn.send(to, float64(s.BytesIn))
	httpBytesOut.send(to, float64(s.BytesOut))
}

// WebSocket returns a collector of the counters of a server.
func WebSocket(s *websocket.Server) prometheus.Collector { return webSocket{s} }

type webSocket struct{ *websocket.Server }

var (
	socketsOpen     = gauge("rondo_websocket_open_connections", "WebSockets that are open.")
	socketsOpened   = counter("rondo_websocket_opened_connections_total", "WebSockets whose handshake was done.")
	socketsClosed   = counter("rondo_websocket_closed_connections_total", "WebSockets that have ended, by the code: 1006 without a closing handshake, other above 1015.", "code")
	socketsReceived = counter("rondo_websocket_received_messages_total", "Messages received.")
	socketsSent     = counter("rondo_websocket_sent_messages_total", "Messages sent, but for broadcasts.")
	socketsBytesIn  = counter("rondo_websocket_received_message_bytes_total", "Bytes of messages received, after decompression.")
	socketsBytesOut = counter("rondo_websocket_sent_message_bytes_total", "Bytes of messages sent, before compression.")
	socketsPingsIn  = counter("rondo_websocket_received_pings_total", "Pings received, each of which is answered.")
	socketsPongsIn  = counter("rondo_websocket_received_pongs_total", "Pongs received.")
	socketsPingsOut = counter("rondo_websocket_sent_pings_total", "Pings sent.")
)

func (webSocket) Describe(to chan<- *prometheus.Desc) {
	describe(to, socketsOpen, socketsOpened, socketsClosed, socketsReceived, socketsSent, socketsBytesIn, socketsBytesOut,
		socketsPingsIn, socketsPongsIn, socketsPingsOut)
}

func (c webSocket) Collect(to chan<- prometheus.Metric) {
	s := c.Stats()
	socketsOpen.send(to, float64(s.Open))
	socketsOpened.send(to, float64(s.Opened))
	for code, n := range s.Closes {
		name := "other"
		if code > 0 {
			name = strconv.Itoa(int(code))
		}
		socketsClosed.send(to, float64(n), name)
	}
	socketsReceived.send(to, float64(s.MessagesIn))
	socketsSent.send(to, float64(s.MessagesOut))
	socketsBytesIn.send(to, float64(s.BytesIn))
	socketsBytesOut.send(to, float64(s.BytesOut))
	socketsPingsIn.send(to, float64(s.PingsIn))
	socketsPongsIn.send(to, float64(s.PongsIn))
	socketsPingsOut.send(to, float64(s.PingsOut))
}
