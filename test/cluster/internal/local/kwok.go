package local

import (
	_ "embed"
	"fmt"
	"os"
	"path/filepath"
)

// kwokConfig is what this cluster adds to kwok's own stages.
//
//go:embed kwok.yaml
var kwokConfig []byte

const kwokConfigFile = "kwok.yaml"

// kwokPart returns kwok, which simulates the kubelets, the storage provider and
// the cloud.
func (p *plan) kwokPart(port *reservation) *part {
	return &part{
		name:    kwokName,
		program: kwokProgram(p.Bin),
		health:  "http://" + address(port.port) + "/healthz",
		ports:   []*reservation{port},
		args: []string{
			"--kubeconfig=" + p.folder.configFile(kwokName+".kubeconfig"),
			"--server-address=" + address(port.port),
			"--manage-all-nodes=true",
			"--node-ip=" + loopback,
			"--cidr=10.244.0.0/16",
			"--node-lease-duration-seconds=40",
			"--config=" + p.folder.configFile(kwokConfigFile),
		},
	}
}

// writeKwok writes kwok's configuration, including all stages that come with
// kwok.
func (p *plan) writeKwok() error {
	if p.Containers {
		return nil
	}
	stages, err := filepath.Glob(filepath.Join(stagesDir(p.Bin), "*.yaml"))
	if err != nil {
		return err
	}
	if len(stages) == 0 {
		return fmt.Errorf("no kwok stages in %s: run `make cluster-binaries`", stagesDir(p.Bin))
	}
	for _, stage := range stages {
		p.kwok.args = append(p.kwok.args, "--config="+stage)
	}
	return os.WriteFile(p.folder.configFile(kwokConfigFile), kwokConfig, 0o600)
}
