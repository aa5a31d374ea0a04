// Package helm runs Helm's actions on releases. The actions are Helm's own, so that
// hooks, notes, history and release records are what the helm CLI expects. The
// operator's behavior is added at the two interfaces that Helm offers: its storage
// driver (release.Driver) and its kube.Interface (kubeClient).
//
// # Timeline of an install
//
// Helm calls back into this package in an order that no single function shows:
//
//  1. Client.Install calls Client.begin, which creates the driver, the kubeClient
//     and the configuration of Helm's actions, all bound to the context of the
//     action. run.prepare checks the values against the chart's schemas and installs
//     the CRDs of the chart.
//  2. Client.render executes the templates within limits, by package chart. The
//     template function lookup reads the cluster through lookupGetter, and readings
//     remembers the answers. The result is a chart whose templates are plain text.
//  3. install.Run, Helm's action, renders that text and calls kubeClient.Build with
//     the manifest. Build parses it (builder) and refuses what the kind's allow block
//     forbids. Helm then reads every object to check its ownership;
//     run.classify explains an object of another release.
//  4. Helm stores the record as pending-install: it calls release.Driver.Create,
//     which calls kubeClient.preflight before anything is written. Preflight checks
//     ownership again, and for an upgrade or a rollback applies by dry run. The driver
//     then signs the record and creates the Secret. The name of the Secret is the
//     lock: a second writer gets release.ErrStale.
//  5. For each pre-install hook Helm calls Build, Delete, Create and
//     WatchUntilReady. Waiting for a hook lends the slot of the action to others and
//     reports the hook to the Notifier.
//  6. Helm calls kubeClient.Create with the objects. It has the kinds watched, and
//     applies each object by server-side apply, through package apply. Objects that
//     the inventory knows as unchanged cost no request. For an upgrade Helm calls
//     Update, which also prunes.
//  7. Wait returns at once: the status of the custom resource follows the readiness
//     of objects after the action.
//  8. The post-install hooks run as in 5.
//  9. Helm calls release.Driver.Update to store the record as deployed, or as failed.
//     The driver adds the inventory of the objects. Helm only logs some writes that
//     failed, so run.outcome reads Driver.WriteErr.
//  10. run.expect tells the inventory which objects to expect from now on.
//
// An upgrade, a rollback and an uninstall follow the same steps. An uninstall uses
// uninstallDriver, which deletes the records last.
//
// # Contexts
//
// Helm's interfaces take no context, so kubeClient, builder, lookupGetter and
// release.Driver hold the one of their action. When it ends, every further request
// fails and the action returns within milliseconds. That is why actions are called
// by Run and never by RunWithContext, which returns while the work goes on.
//
// # Verbs
//
// Install, Upgrade, Rollback, Uninstall, Orphan and Adopt change a release. Repair
// and Verify correct drift from the stored manifest. Sign, Restore, Mark, MarkFailed,
// Record, Tidy, Prune and Test maintain its records.
package helm
