package local

// etcdPart returns the database. Its content need not survive a crash of the
// machine, so that it does not sync to disk.
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
			// Large enough for tests that create very many releases.
			"--quota-backend-bytes=8589934592",
			// Fewer snapshots, which are only useful in clusters that run for a
			// long time.
			"--snapshot-count=100000",
			"--log-level=warn",
		},
	}
}
