// Package helm runs Helm. It is the only package that imports helm.sh/helm, so
// that a move to another version of Helm is this package's work alone.
//
// The actions are Helm's own, so that hooks, notes, history and release records
// are what the helm CLI expects. What an operator needs otherwise sits at the
// two seams that Helm offers:
//
//   - kubeClient is the kube.Interface through which an action reaches objects.
//     It applies them by server-side apply through package apply.
//   - recordDriver is the storage driver: the history comes from an index in
//     memory, a record is read only where its content is needed, and every
//     write is remembered in the index at once.
//
// Both carry the context of the action. When it ends, every further request
// fails and the action returns within milliseconds; its return is the end of
// the action. That is why the actions are called by Run and never by
// RunWithContext, which returns while the work goes on.
//
// Chart is a chart that is loaded once and cloned for every render, for Helm
// changes the charts that it renders. Client has one method a verb: Install,
// Upgrade, Uninstall and Adopt make, change, end and take over a release;
// Repair and Verify bring back what it owns; MarkFailed and Prune keep its
// records in order.
package helm
