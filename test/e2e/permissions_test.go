package e2e

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/test/e2e/harness"
)

// every returns a rule that allows all verbs on a resource.
func every(group string, resources ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: resources, Verbs: []string{"*"}}
}

// about returns the part of the text of /readyz that concerns a kind.
func about(text string, kind harness.Kind) string {
	var lines []string
	within := false
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(line, " ") {
			within = strings.HasPrefix(line, kind.GroupKind().String()+":")
		}
		if within {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "")
}

// reviews counts the operator's requests for its own permissions.
func reviews(audit *harness.Audit) (count int) {
	for _, request := range audit.Requests() {
		if request.ObjectRef.Resource == "selfsubjectrulesreviews" {
			count++
		}
	}
	return count
}

func TestPermissions_MissingAreReportedAndRecover(t *testing.T) {
	t.Parallel()
	env := harness.New(t)
	kind, beside := env.NewKind("Workload"), env.NewKind("Plain")
	env.InstallCRD(kind)
	env.InstallCRD(beside)
	operator := env.NewOperator(harness.Options{
		Watches: env.Watches(harness.MakeEntry(kind, harness.Chart("workloads")), harness.MakeEntry(beside, harness.Chart("plain"))),
		Missing: []rbacv1.PolicyRule{every("apps", "deployments"), every("batch", "jobs")},
	}).Start()
	const always = `{apiGroups: ["apps"], resources: ["deployments"], verbs: ["get", "list", "watch", "create", "patch", "delete"]}`
	// The chart renders a Job only with some values.
	const sometimes = `{apiGroups: ["batch"], resources: ["jobs"], verbs: ["get", "list", "watch", "create", "patch", "delete"]}`
	web, plain := harness.MakeCR(kind, "web").Obj(), harness.MakeCR(beside, "plain").Obj()
	if text := about(operator.WaitReadyz(http.StatusOK), kind); !strings.HasSuffix(text, ": Serving\n") || strings.Count(text, "\n") != 1 {
		t.Errorf("before any request was forbidden, /readyz reports for the kind\n%s", text)
	}
	env.Create(web, plain)
	text := operator.WaitReadyz(http.StatusOK, always, sometimes)
	ours := about(text, kind)
	first, second, _ := strings.Cut(ours, "rules missing from the operator's role that only some values need")
	if !strings.Contains(first, "  - "+always+" # chart workloads: templates/all.yaml") || !strings.Contains(second, "  - "+sometimes+" # ") {
		t.Errorf("/readyz reports for the kind\n%s", ours)
	}
	if others := about(text, beside); !strings.HasSuffix(others, ": Serving\n") || strings.Count(others, "\n") != 1 {
		t.Errorf("/readyz reports for the other kind\n%s", others)
	}

	status := env.WaitCondition(web, "PermissionsMissing", metav1.ConditionTrue, "Forbidden")
	if message := condition(t, status, "PermissionsMissing").Message; message != "Add to the rules of the operator's role: "+always {
		t.Errorf("the message of PermissionsMissing is %q", message)
	}
	// The first message may name the refused verb only.
	message := ""
	env.WaitStatus(web, "with all missing rules in the message of Ready", func(status api.Status) error {
		if ready := harness.Condition(status, "Ready"); ready != nil && ready.Reason == "InstallFailed" {
			message = ready.Message
		}
		if !strings.Contains(message, "is forbidden") || !strings.Contains(message, "Add to the rules of the operator's role: "+always+". Next attempt at ") {
			return fmt.Errorf("the message is %q", message)
		}
		return nil
	})
	if status := env.WaitReady(plain); harness.Condition(status, "PermissionsMissing") != nil {
		t.Errorf("the other kind's resource has conditions %+v", status.Conditions)
	}

	if n := env.GrantListed(operator, message); n != 1 {
		t.Fatalf("%d rules in %q", n, message)
	}
	env.WaitReady(web)
	env.ExpectRevisions("web", "1 deployed")
	// The operator checks missing permissions again every few seconds.
	env.WaitStatus(web, "without PermissionsMissing", func(status api.Status) error {
		if harness.Condition(status, "PermissionsMissing") != nil {
			return errors.New("the condition is still set")
		}
		return nil
	})
	text = operator.WaitReadyz(http.StatusOK, sometimes)
	if strings.Contains(text, "deployments") {
		t.Errorf("/readyz reports\n%s", text)
	}

	// Rules that only some values need are reported when the values are used.
	env.SetSpec(harness.MakeCR(kind, "web").Set("job.enabled", true).Obj())
	status = env.WaitCondition(web, "Ready", metav1.ConditionFalse, "UpgradeFailed")
	message = condition(t, status, "Ready").Message
	if harness.Condition(status, "PermissionsMissing") != nil || !strings.Contains(message, sometimes+". Next attempt at ") {
		t.Errorf("the message of Ready is %q", message)
	}
	env.GrantListed(operator, message)
	env.WaitReady(web)
	if text := about(operator.WaitReadyz(http.StatusOK, kind.GroupKind().String()+": Serving\n"+beside.GroupKind().String()), kind); strings.Count(text, "\n") != 1 {
		t.Errorf("/readyz reports for the kind\n%s", text)
	}

	// From here on no permission is missing, and the operator makes no reviews.
	audit := env.Audit(operator.User())
	fenceOf(env, beside)
	if n := reviews(audit); n > 0 {
		t.Errorf("the operator made %d self-subject reviews", n)
	}
}

func TestPermissions_NoReviewsWhileNoneIsMissing(t *testing.T) {
	t.Parallel()
	env := harness.New(t)
	kind := env.NewKind("Plain")
	env.InstallCRD(kind)
	operator := env.NewOperator(harness.Options{Watches: env.Watches(harness.MakeEntry(kind, harness.Chart("plain")))})
	audit := env.Audit(operator.User())
	operator.Start()
	fenceOf(env, kind)
	if n := reviews(audit); n != 1 {
		t.Errorf("the operator made %d self-subject reviews, want 1", n)
	}
	if _, text, err := operator.Readyz(t.Context()); err != nil || text != "ready\n"+kind.GroupKind().String()+": Serving\n" {
		t.Errorf("/readyz reports %q, %v", text, err)
	}
}

func TestPermissions_UnwatchableKindDoesNotBlockOthers(t *testing.T) {
	t.Parallel()
	env := harness.New(t)
	kind, beside := env.NewKind("Secretive"), env.NewKind("Plain")
	env.InstallCRD(kind)
	env.InstallCRD(beside)
	operator := env.NewOperator(harness.Options{
		Watches: env.Watches(harness.MakeEntry(kind, harness.Chart("plain")), harness.MakeEntry(beside, harness.Chart("plain"))),
		Missing: []rbacv1.PolicyRule{
			every(kind.Group, "secretives", "secretives/status"),
			// Without this permission, the operator does not observe new CRDs.
			every("apiextensions.k8s.io", "customresourcedefinitions"),
		},
		// An operator of some namespaces does not request it.
		AllNamespaces: true,
	}).Start()
	web, plain := harness.MakeCR(kind, "web").Obj(), harness.MakeCR(beside, "plain").Obj()
	env.Create(web, plain)
	env.WaitReady(plain)
	text := operator.WaitReadyz(http.StatusOK,
		kind.GroupKind().String()+": Forbidden; the operator lacks the permission to watch\n",
		`  - {apiGroups: ["`+kind.Group+`"], resources: ["secretives"], verbs: ["list", "watch", "patch"]}`,
		`  - {apiGroups: ["`+kind.Group+`"], resources: ["secretives/status"], verbs: ["patch"]}`,
		`resources: ["customresourcedefinitions"], verbs: ["list", "watch"]}`,
	)
	env.GrantListed(operator, about(text, kind))
	env.WaitReady(web)
	operator.WaitReadyz(http.StatusOK, kind.GroupKind().String()+": Serving\n")
}

func TestPermissions_WithoutRecordsNothingIsServed(t *testing.T) {
	t.Parallel()
	env := harness.New(t)
	kind := env.NewKind("Plain")
	env.InstallCRD(kind)
	operator := env.NewOperator(harness.Options{
		Watches: env.Watches(harness.MakeEntry(kind, harness.Chart("plain"))),
		Missing: []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"list", "watch"}}},
	})
	operator.Launch()
	env.GrantListed(operator, operator.WaitReadyz(http.StatusServiceUnavailable,
		"not ready: the operator lacks the permission to watch Secrets, which store the release records", `{apiGroups: [""], resources: ["secrets"], verbs: ["list", "watch"]}`))
	web := harness.MakeCR(kind, "web").Obj()
	env.Create(web)
	env.WaitReady(web)
	operator.WaitReadyz(http.StatusOK, "ready\n")
}

// TestPermissions_UnwatchableObjectsDoNotBlockOthers would time out if the
// operator waited for each release in turn.
func TestPermissions_UnwatchableObjectsDoNotBlockOthers(t *testing.T) {
	t.Parallel()
	env := harness.New(t)
	kind := env.NewKind("Plain")
	env.InstallCRD(kind)
	watches := env.Watches(harness.MakeEntry(kind, harness.Chart("plain")))
	operator := env.NewOperator(harness.Options{Watches: watches}).Start()
	var crs []*unstructured.Unstructured
	for i := range 25 {
		crs = append(crs, harness.MakeCR(kind, fmt.Sprintf("web-%d", i)).Obj())
	}
	env.Create(crs...)
	env.WaitReady(crs...)
	operator.Stop()

	operator = env.NewOperator(harness.Options{
		Watches: watches,
		Missing: []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"list", "watch"}}},
	}).Start()
	status := env.WaitCondition(crs[24], "PermissionsMissing", metav1.ConditionTrue, "Forbidden")
	env.GrantListed(operator, condition(t, status, "PermissionsMissing").Message)
	env.WaitStatus(crs[24], "without PermissionsMissing", func(status api.Status) error {
		if harness.Condition(status, "PermissionsMissing") != nil {
			return errors.New("the condition is still set")
		}
		return nil
	})
	env.Patch(harness.ConfigMap("web-24-0"), `[{"op": "replace", "path": "/data/message", "value": "other"}]`)
	env.WaitEvent(crs[24], "DriftCorrected")
}

// The operator has permission for the status, but not for the objects.
func TestPermissions_StatusOnlyIsReported(t *testing.T) {
	t.Parallel()
	env := harness.New(t)
	kind := env.NewKind("Plain")
	env.InstallCRD(kind)
	operator := env.NewOperator(harness.Options{
		Watches: env.Watches(harness.MakeEntry(kind, harness.Chart("plain"))),
		Missing: []rbacv1.PolicyRule{{APIGroups: []string{kind.Group}, Resources: []string{"plains"}, Verbs: []string{"patch"}}},
	}).Start()
	operator.WaitReadyz(http.StatusOK, "rules missing from the operator's role")
	web := harness.MakeCR(kind, "web").Obj()
	env.Create(web)
	status := env.WaitCondition(web, "PermissionsMissing", metav1.ConditionTrue, "Forbidden")
	if harness.Condition(status, "Ready").Status == metav1.ConditionTrue {
		t.Error("condition Ready is True")
	}
	if n := env.GrantListed(operator, condition(t, status, "PermissionsMissing").Message); n != 1 {
		t.Errorf("the message names %d rules", n)
	}
	env.WaitReady(web)
}
