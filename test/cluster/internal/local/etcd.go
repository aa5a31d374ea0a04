package local

// etcdPart is the database. Nothing in it has to survive the machine, so it
// does not wait for the disk.
func (p *plan) etcdPart(client, peer *reservation) *part {
	clientURL, peerURL := "http://"+address(client.port), "http://"+address(peer.port)
	return &part{
		name:    etcdName,
		program: kubeProgram(p.Bin, etcdName),
		health:  clientURL + "/health",
		ports:   []*reservation{client, peer},
		args: []string{
			"--name=default",
			"--data-dir=" + p.folder.data(),
			"--listen-client-urls=" + clientURL,
			"--advertise-client-urls=" + clientURL,
			"--listen-peer-urls=" + peerURL,
			"--initial-advertise-peer-urls=" + peerURL,
			"--initial-cluster=default=" + peerURL,
			"--unsafe-no-fsync",
			// Room for tests that make very many releases.
			"--quota-backend-bytes=8589934592",
			// Fewer snapshots: they only pay off in a cluster that lives long.
			"--snapshot-count=100000",
			"--log-level=warn",
		},
	}
}
