package plugin

import (
	"fmt"

	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
)

// session is what all verbs share: the streams, the flags, and the connection
// that the flags lead to.
type session struct {
	genericiooptions.IOStreams
	flags  *genericclioptions.ConfigFlags
	output format
	color  colorMode
}

// connect returns the configuration of the connection that the flags lead to.
func (s *session) connect() (*rest.Config, error) {
	config, err := s.flags.ToRESTConfig()
	if err != nil {
		return nil, fmt.Errorf("find the cluster: %w", err)
	}
	config = rest.CopyConfig(config)
	// As kubectl has it: one person's requests need no slowing down.
	config.QPS, config.Burst = 50, 300
	config.WarningHandler = rest.NewWarningWriter(s.ErrOut, rest.WarningWriterOptions{Deduplicate: true})
	return config, nil
}

// dynamic returns a client for objects of any kind.
func (s *session) dynamic() (dynamic.Interface, error) {
	config, err := s.connect()
	if err != nil {
		return nil, err
	}
	return dynamic.NewForConfig(config)
}

// namespace returns that of -n or of the context, and whether -n was given.
func (s *session) namespace() (name string, given bool, err error) {
	name, given, err = s.flags.ToRawKubeConfigLoader().Namespace()
	if err != nil {
		return "", false, fmt.Errorf("find the namespace: %w", err)
	}
	return name, given, nil
}
