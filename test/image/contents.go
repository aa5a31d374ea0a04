package main

import (
	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// operator returns the image of the operator, like the Dockerfile: one static
// binary, no user database and no shell.
func operator(reference, binary string) image {
	return image{
		reference: reference,
		layers: []layer{files{
			"chartwright":      {mode: 0o755, source: binary},
			"opt/":             {mode: 0o755},
			"opt/chartwright/": {mode: 0o755},
		}},
		config: v1.Config{Entrypoint: []string{"/chartwright"}, Cmd: []string{"run"}, User: "65532:65532", WorkingDir: "/opt/chartwright"},
	}
}

// postgres returns an image like the official one of PostgreSQL: user 999, and
// all programs in the search path.
func postgres(reference, major, suite string) image {
	return image{
		reference: reference,
		layers:    []layer{postgresLayer(major, suite)},
		config:    v1.Config{Cmd: []string{"postgres"}, Env: []string{searchPath + ":/usr/lib/postgresql/" + major + "/bin", "PG_MAJOR=" + major, "LANG=C.UTF-8"}},
	}
}

// postgresLayer contains one major version of PostgreSQL.
func postgresLayer(major, suite string) debian {
	return debian{suite: suite, packages: []string{"postgresql-" + major}, hooks: []string{
		`echo "postgres:x:999:999::/var/lib/postgresql:/bin/bash" >>"$1/etc/passwd"`,
		`echo "postgres:x:999:" >>"$1/etc/group"`,
		`echo "postgres:*:20000::::::" >>"$1/etc/shadow"`,
		`echo "postgres:!::" >>"$1/etc/gshadow"`,
		// The package would create a database server.
		`mkdir -p "$1/etc/postgresql-common" && echo "create_main_cluster = false" >"$1/etc/postgresql-common/createcluster.conf"`,
	}}
}

// nginxRuns is how nginx runs in the image nginx-unprivileged.
var nginxRuns = v1.Config{
	Cmd: []string{"nginx", "-g", "daemon off;"}, User: "101", StopSignal: "SIGQUIT", Env: []string{searchPath},
	ExposedPorts: map[string]struct{}{"8080/tcp": {}},
}

// nginxConfig is the configuration of the image nginx-unprivileged: it listens
// on port 8080 and writes only below /tmp.
var nginxConfig = files{
	"etc/":                            {mode: 0o755},
	"etc/nginx/":                      {mode: 0o755},
	"etc/nginx/conf.d/":               {mode: 0o755},
	"etc/nginx/conf.d/default.conf":   {mode: 0o644, text: nginxSite},
	"etc/nginx/nginx.conf":            {mode: 0o644, text: nginxMain},
	"usr/":                            {mode: 0o755},
	"usr/share/":                      {mode: 0o755},
	"usr/share/nginx/":                {mode: 0o755},
	"usr/share/nginx/html/":           {mode: 0o755},
	"usr/share/nginx/html/index.html": {mode: 0o644, text: "<h1>Welcome to nginx!</h1>\n"},
	"var/":                            {mode: 0o755},
	"var/log/":                        {mode: 0o755},
	"var/log/nginx/":                  {mode: 0o755},
	"var/log/nginx/access.log":        {mode: 0o777, link: "/dev/stdout"},
	"var/log/nginx/error.log":         {mode: 0o777, link: "/dev/stderr"},
}

const nginxSite = `server {
    listen 8080;
    server_name localhost;
    location / {
        root /usr/share/nginx/html;
        index index.html index.htm;
    }
}
`

const nginxMain = `worker_processes auto;
error_log /var/log/nginx/error.log notice;
pid /tmp/nginx.pid;
events {
    worker_connections 1024;
}
http {
    proxy_temp_path /tmp/proxy_temp;
    client_body_temp_path /tmp/client_temp;
    fastcgi_temp_path /tmp/fastcgi_temp;
    uwsgi_temp_path /tmp/uwsgi_temp;
    scgi_temp_path /tmp/scgi_temp;
    include /etc/nginx/mime.types;
    default_type application/octet-stream;
    access_log /var/log/nginx/access.log;
    sendfile on;
    keepalive_timeout 65;
    include /etc/nginx/conf.d/*.conf;
}
`
