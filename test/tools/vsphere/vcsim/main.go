// Command vcsim is govmomi's simulator of vCenter, with one datacenter, one
// cluster and two virtual machines. It prints its URL and runs until SIGINT or
// SIGTERM. The simulator's own command is a module that Go module proxies do not
// serve for every version, so this one has the flags that the tests use.
package main

import (
	"crypto/tls"
	"flag"
	"fmt"
	"log"
	"net/url"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/vmware/govmomi/simulator"
	// Clients that use the REST API need its endpoints.
	_ "github.com/vmware/govmomi/vapi/simulator"
)

func main() {
	model := simulator.VPX()
	listen := flag.String("l", "127.0.0.1:8989", "address to listen on; port 0 selects a free port")
	user := flag.String("username", "user", "login name")
	password := flag.String("password", "pass", "password")
	cloneTime := flag.Duration("clone-time", 0, "time that the clone of a virtual machine takes")
	flag.IntVar(&model.Host, "standalone-host", 0, "number of hosts outside the cluster, each with its own resource pool")
	encrypt := flag.Bool("tls", true, "whether to serve HTTPS, with a certificate that no client trusts")
	flag.Parse()

	simulator.TaskDelay.MethodDelay = map[string]int{"CloneVm": int(*cloneTime / time.Millisecond)}
	if err := model.Create(); err != nil {
		log.Fatal(err)
	}
	defer model.Remove()
	if *encrypt {
		model.Service.TLS = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	model.Service.RegisterEndpoints = true
	model.Service.Listen = &url.URL{Host: *listen, User: url.UserPassword(*user, *password)}
	server := model.Service.NewServer()
	defer server.Close()
	fmt.Println(server.URL.Redacted())

	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGINT, syscall.SIGTERM)
	<-stop
}
