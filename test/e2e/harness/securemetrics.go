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

// Roles of config/rbac for the metrics.
const (
	metricsAuthRole   = "chartwright-metrics-auth-role"
	metricsReaderRole = "chartwright-metrics-reader"
)

// MetricsAuth returns the rules that an operator needs to authorize requests
// for its metrics.
func MetricsAuth() []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{
		{Verbs: []string{"create"}, APIGroups: []string{"authentication.k8s.io"}, Resources: []string{"tokenreviews"}},
		{Verbs: []string{"create"}, APIGroups: []string{"authorization.k8s.io"}, Resources: []string{"subjectaccessreviews"}},
	}
}

// BindMetricsAuth grants these rules to an operator's account, by the role of
// config/rbac.
func (e *Env) BindMetricsAuth(a Account) {
	e.t.Helper()
	shared.granted.record(a.User(), e.bindCluster(a, metricsAuthRole), nil)
}

// AllowScrape allows the account to read metrics, by the role of config/rbac.
func (e *Env) AllowScrape(a Account) {
	e.t.Helper()
	e.bindCluster(a, metricsReaderRole)
}

// bindCluster binds an existing ClusterRole and returns its rules.
func (e *Env) bindCluster(a Account, name string) []rbacv1.PolicyRule {
	e.t.Helper()
	role, err := e.Typed.RbacV1().ClusterRoles().Get(e.t.Context(), name, metav1.GetOptions{})
	e.must(err)
	bindings := e.Typed.RbacV1().ClusterRoleBindings()
	created, err := bindings.Create(e.t.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{GenerateName: a.name + "-"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name},
		Subjects:   a.subjects(),
	}, metav1.CreateOptions{})
	e.must(err)
	e.cleanup(func(ctx context.Context) error { return bindings.Delete(ctx, created.Name, metav1.DeleteOptions{}) })
	e.waitAllowed(a, "", role.Rules...)
	return role.Rules
}

// Token returns a token of the account.
func (e *Env) Token(a Account) string {
	e.t.Helper()
	token, err := e.Typed.CoreV1().ServiceAccounts(a.namespace).CreateToken(e.t.Context(), a.name, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	e.must(err)
	return token.Status.Token
}

// Address returns the address of the metrics.
func (m Metrics) Address() string { return m.address }

// Scrape requests the metrics over TLS, with a token unless it is empty, and
// returns the response. If trusted is nil, every certificate is accepted;
// otherwise trusted is the only trusted certificate.
func (m Metrics) Scrape(ctx context.Context, token string, trusted []byte) (status int, text string, err error) {
	settings := &tls.Config{InsecureSkipVerify: trusted == nil} //nolint:gosec // the operator's own certificate is self-signed
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

// Certificate writes a new certificate for the metrics to a folder, with the
// file names of Secrets of type kubernetes.io/tls, and returns it.
func (m Metrics) Certificate(dir string) []byte {
	m.env.t.Helper()
	certificate, key, err := certutil.GenerateSelfSignedCertKey("127.0.0.1", nil, nil)
	m.env.must(err)
	// Replace each file atomically, as the kubelet does.
	for name, data := range map[string][]byte{"tls.crt": certificate, "tls.key": key} {
		next := filepath.Join(dir, "next-"+name)
		m.env.must(os.WriteFile(next, data, 0o600))
		m.env.must(os.Rename(next, filepath.Join(dir, name)))
	}
	return bytes.Clone(certificate)
}

// WaitScrape waits until a scrape returns a status.
func (m Metrics) WaitScrape(token string, trusted []byte, status int) (text string) {
	m.env.t.Helper()
	m.env.Wait(fmt.Sprintf("a scrape to be answered with %d", status), func(ctx context.Context) error {
		code, answer, err := m.Scrape(ctx, token, trusted)
		if err == nil && code != status {
			err = fmt.Errorf("status %d: %s", code, answer)
		}
		text = answer
		return err
	})
	return text
}
