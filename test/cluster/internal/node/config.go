package node

import (
	"embed"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"text/template"
)

// Name is the name of the node.
const Name = "node-1"

// Config defines a node.
type Config struct {
	Network Network `json:"network"`
	// Dir is the folder with the data of the node.
	Dir string `json:"dir"`
	// Programs are the folders with the programs of the node.
	Programs []string `json:"programs"`
	// CNI is the folder with the network plugins.
	CNI string `json:"cni"`
	// Server is the address (host and port) of the API server.
	Server string `json:"server"`
	// CA, Cert and Key are the files for the kubelet's own API.
	CA   string `json:"ca"`
	Cert string `json:"cert"`
	Key  string `json:"key"`
	// Kubelet and Proxy are the kubeconfigs of kubelet and kube-proxy.
	Kubelet string `json:"kubelet"`
	Proxy   string `json:"proxy"`
	// Logs is the folder for the logs of the programs.
	Logs string `json:"logs"`
	// Images are image archives that the node imports.
	Images []string `json:"images"`
}

// HealthPort is the port at which the kubelet reports its health.
const HealthPort = 10248

//go:embed templates
var templates embed.FS

// Name is the name of the node, for the templates.
func (c *Config) Name() string { return Name }

// HealthPort is the port of the kubelet, for the templates.
func (c *Config) HealthPort() int { return HealthPort }

// The folders of the node's data. They replace the usual folders of the
// programs in the node.

func (c *Config) kubeletData() string    { return filepath.Join(c.Dir, "kubelet") }
func (c *Config) containerdData() string { return filepath.Join(c.Dir, "containerd") }
func (c *Config) podLogs() string        { return filepath.Join(c.Dir, "pod-logs") }
func (c *Config) imported() string       { return filepath.Join(c.Dir, "imported") }

// Volumes is the folder with the content of persistent volumes.
func (c *Config) Volumes() string { return filepath.Join(c.Dir, "volumes") }

func (c *Config) file(name string) string { return filepath.Join(c.Dir, "config", name) }

// Write creates the folders of a new node and writes its configuration, with
// the file node.json for Run.
func (c *Config) Write() error {
	if err := Clean(c.Dir); err != nil {
		return err
	}
	for _, dir := range []string{c.kubeletData(), c.containerdData(), c.podLogs(), c.imported(), c.Volumes(), c.file("cni")} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
	}
	for _, name := range []string{"containerd.toml", "kubelet.yaml", "kube-proxy.yaml", "cni/pods.conflist", "resolv.conf"} {
		text, err := c.Render(filepath.Base(name))
		if err != nil {
			return err
		}
		if err := os.WriteFile(c.file(name), []byte(text), 0o600); err != nil {
			return err
		}
	}
	raw, err := json.MarshalIndent(c, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(c.file("node.json"), raw, 0o600)
}

// Render returns a file of the folder templates with the values of this node.
func (c *Config) Render(name string) (string, error) {
	parsed, err := template.ParseFS(templates, "templates/"+name)
	if err != nil {
		return "", err
	}
	var text strings.Builder
	if err := parsed.Execute(&text, c); err != nil {
		return "", fmt.Errorf("template %s: %w", name, err)
	}
	return text.String(), nil
}

// read reads the configuration that Write wrote.
func read(file string) (*Config, error) {
	raw, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	c := &Config{}
	if err := json.Unmarshal(raw, c); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return c, nil
}

// Clean removes the data of a node. It keeps the imported images, because
// another import takes longer than everything else in a start.
func Clean(dir string) error {
	for _, name := range []string{"kubelet", "volumes", "config"} {
		if err := os.RemoveAll(filepath.Join(dir, name)); err != nil {
			return err
		}
	}
	return nil
}
