package download

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// TestDownload_StalledServer: a server that stops sending ends the download, also
// before the first byte.
func TestDownload_StalledServer(t *testing.T) {
	for _, begin := range []func(w http.ResponseWriter){
		func(http.ResponseWriter) {},
		func(w http.ResponseWriter) {
			w.Write([]byte("half"))
			w.(http.Flusher).Flush()
		},
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			begin(w)
			<-r.Context().Done()
		}))
		release := Release{Server: server.URL, Version: "v1", Platform: "linux/amd64", Stall: 50 * time.Millisecond}
		err := release.Download(t.Context(), Checksums{"v1/bin/linux/amd64/kubectl": strings.Repeat("0", checksumLength)}, t.TempDir(), []string{"kubectl"})
		if err == nil || !strings.Contains(err.Error(), "no data for 50ms") {
			t.Errorf("got %v, want a stall", err)
		}
		server.Close()
	}
}
