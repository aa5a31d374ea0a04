package harness

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"

	authenticationv1 "k8s.io/api/authentication/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	certutil "k8s.io/client-go/util/cert"
)

// Roles of config/rbac around the metrics.
const (
	metricsAuthRole   = "chartwright-metrics-auth-role"
	metricsReaderRole = "chartwright-metrics-reader"
)

// MetricsAuth are the rights to ask the API server who scrapes.
func MetricsAuth() []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{
		{Verbs: []string{"create"}, APIGroups: []string{"authentication.k8s.io"}, Resources: []string{"tokenreviews"}},
		{Verbs: []string{"create"}, APIGroups: []string{"authorization.k8s.io"}, Resources: []string{"subjectaccessreviews"}},
	}
}

// BindMetricsAuth gives them to the account of an operator, by the role of
// config/rbac.
func (e *Env) BindMetricsAuth(a Account) {
	e.t.Helper()
	shared.rights.note(a.User(), e.bindCluster(a, metricsAuthRole), nil)
}

// MayScrape lets the account read metrics, by the role of config/rbac.
func (e *Env) MayScrape(a Account) {
	e.t.Helper()
	e.bindCluster(a, metricsReaderRole)
}

// bindCluster binds a ClusterRole that is there, and returns its rules.
func (e *Env) bindCluster(a Account, name string) []rbacv1.PolicyRule {
	e.t.Helper()
	role, err := e.Typed.RbacV1().ClusterRoles().Get(e.t.Context(), name, metav1.GetOptions{})
	e.must(err)
	bindings := e.Typed.RbacV1().ClusterRoleBindings()
	made, err := bindings.Create(e.t.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{GenerateName: a.name + "-"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name},
		Subjects:   a.subjects(),
	}, metav1.CreateOptions{})
	e.must(err)
	e.cleanup(func(ctx context.Context) error { return bindings.Delete(ctx, made.Name, metav1.DeleteOptions{}) })
	e.waitAllowed(a, "", role.Rules...)
	return role.Rules
}

// Token returns one by which the account logs in.
func (e *Env) Token(a Account) string {
	e.t.Helper()
	token, err := e.Typed.CoreV1().ServiceAccounts(a.namespace).CreateToken(e.t.Context(), a.name, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	e.must(err)
	return token.Status.Token
}

// Address is where the metrics are served.
func (m Metrics) Address() string { return m.address }

// Scrape asks for the metrics by TLS, with a token unless that is empty, and
// returns what is answered. Only the certificate given is trusted or, where
// there is none, any.
func (m Metrics) Scrape(ctx context.Context, token string, trusted []byte) (status int, text string, err error) {
	settings := &tls.Config{InsecureSkipVerify: trusted == nil} //nolint:gosec // the operator's own is self-signed
	if trusted != nil {
		settings.RootCAs = x509.NewCertPool()
		settings.RootCAs.AppendCertsFromPEM(trusted)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+m.address+"/metrics", http.NoBody)
	if err != nil {
		return 0, "", err
	}
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	transport := &http.Transport{TLSClientConfig: settings, DisableKeepAlives: true}
	response, err := (&http.Client{Transport: transport}).Do(request)
	if err != nil {
		return 0, "", err
	}
	defer func() { _ = response.Body.Close() }()
	data, err := io.ReadAll(response.Body)
	return response.StatusCode, string(data), err
}

// Certificate writes a new certificate for the metrics into a folder, by the
// names that Secrets of the type kubernetes.io/tls have, and returns it.
func (m Metrics) Certificate(dir string) []byte {
	m.env.t.Helper()
	certificate, key, err := certutil.GenerateSelfSignedCertKey("127.0.0.1", nil, nil)
	m.env.must(err)
	// All of a file is there at once, as the kubelet does it.
	for name, data := range map[string][]byte{"tls.crt": certificate, "tls.key": key} {
		next := filepath.Join(dir, "next-"+name)
		m.env.must(os.WriteFile(next, data, 0o600))
		m.env.must(os.Rename(next, filepath.Join(dir, name)))
	}
	return bytes.Clone(certificate)
}

// WaitScrape waits until a scrape is answered with a status.
func (m Metrics) WaitScrape(token string, trusted []byte, status int) (text string) {
	m.env.t.Helper()
	m.env.Wait(fmt.Sprintf("a scrape to be answered with %d", status), func(ctx context.Context) error {
		code, answer, err := m.Scrape(ctx, token, trusted)
		if err == nil && code != status {
			err = fmt.Errorf("it is %d: %s", code, answer)
		}
		text = answer
		return err
	})
	return text
}
