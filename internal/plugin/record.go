package plugin

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/helm"
	"github.com/chartwright/chartwright/internal/release"
)

// The revisions of a release are Secrets. What the status says of them anybody
// may read who reads the custom resource; the rest takes rights to Secrets.

var secretResource = schema.GroupVersionResource{Version: "v1", Resource: "secrets"}

// typed returns a client for the kinds of Kubernetes' own.
func (s *session) typed() (kubernetes.Interface, error) {
	config, err := s.connect()
	if err != nil {
		return nil, err
	}
	return kubernetes.NewForConfig(config)
}

// revision reads one revision whole.
func (s *session) revision(ctx context.Context, status api.Status, revision int64) (*helm.Stored, error) {
	client, err := s.typed()
	if err != nil {
		return nil, err
	}
	release := status.Release
	secret, err := client.CoreV1().Secrets(release.Namespace).Get(ctx, helm.RecordName(release.Name, int(revision)), metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("revision %d of release %s is not stored; there are %s", revision, release.Name, strings.Join(numbers(status.History), ", "))
	}
	if err != nil {
		return nil, right{
			verb: "get", resource: secretResource.GroupResource(), namespace: release.Namespace,
			purpose: fmt.Sprintf("to read revision %d of release %s", revision, release.Name),
		}.explain(err)
	}
	return helm.ReadRecord(secret)
}

// numbers names the revisions that the status tells of, oldest first.
func numbers(history []api.HistoryEntry) []string {
	found := make([]string, len(history))
	for i, entry := range history {
		found[i] = strconv.FormatInt(entry.Revision, 10)
	}
	slices.Reverse(found)
	return found
}

// history reads what the records of a release say beside the revisions
// themselves, newest first.
func (s *session) history(ctx context.Context, of *api.ReleaseStatus) ([]release.Record, error) {
	config, err := s.connect()
	if err != nil {
		return nil, err
	}
	client, err := metadata.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	list, err := client.Resource(secretResource).Namespace(of.Namespace).List(ctx, metav1.ListOptions{
		LabelSelector: labels.Set{release.LabelOwner: release.OwnerHelm, release.LabelName: of.Name}.String(),
		FieldSelector: "type=" + release.SecretType,
	})
	if err != nil {
		return nil, right{
			verb: "list", resource: secretResource.GroupResource(), namespace: of.Namespace,
			purpose: fmt.Sprintf("to tell more of the revisions of release %s than the status does", of.Name),
		}.explain(err)
	}
	var found []release.Record
	for i := range list.Items {
		if record, ok := release.FromMeta(&list.Items[i]); ok {
			found = append(found, record)
		}
	}
	slices.SortFunc(found, func(a, b release.Record) int { return b.Revision - a.Revision })
	return found, nil
}

// wasDeployed tells whether a revision of that status is deployed or once was.
func wasDeployed(status string) bool { return release.Record{Status: status}.WasDeployed() }
