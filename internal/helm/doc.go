// Package helm runs Helm's actions on releases. It uses Helm's own actions, so that
// hooks, notes, history and release records are compatible with the helm CLI. The
// operator adds its behavior at two interfaces of Helm: the storage driver
// (release.Driver) and kube.Interface (kubeClient).
//
// # Timeline of an install
//
// Helm calls back into this package in an order that no single function shows:
//
//  1. Client.Install calls Client.begin, which creates the driver, the kubeClient
//     and the configuration of Helm's actions with the context of the action.
//     run.prepare checks the values against the chart's schemas and installs the CRDs
//     of the chart.
//  2. run.deploy executes the templates with the limits of package chart. The template
//     function lookup reads the cluster through lookupGetter, and lookupRecord stores
//     digests of the results. The result is a chart whose templates are plain text.
//  3. install.Run, Helm's action, renders that text and calls kubeClient.Build with
//     the manifest. Build parses it (builder) and rejects objects that the kind's
//     allow block forbids. Helm then reads every object to check its ownership;
//     run.classify explains which objects belong to another release.
//  4. Helm stores the record as pending-install: it calls release.Driver.Create,
//     which calls kubeClient.preflight before anything is written. preflight checks
//     ownership again, and applies an upgrade or a rollback with a dry run. The driver
//     then signs the record and creates the Secret. The name of the Secret is the
//     lock: a second writer gets release.ErrStale.
//  5. For each pre-install hook Helm calls Build, Delete, Create and
//     WatchUntilReady. While the action waits for a hook, it lends its slot to other
//     actions, and the Notifier reports the hook.
//  6. Helm calls kubeClient.Create with the objects. Create watches their kinds and
//     applies each object by server-side apply, through package apply. Minutes may
//     have passed since step 4, so each apply names the UID of the object that was
//     checked, or creates the object; if that fails, the object is checked again
//     (onlyOwned). Objects that are unchanged according to the inventory cost no
//     request. For an upgrade Helm calls Update, which also prunes.
//  7. Wait returns at once. The status of the custom resource reports the readiness
//     of the objects after the action.
//  8. The post-install hooks run as in 5.
//  9. Helm calls release.Driver.Update to store the record as deployed or failed. The
//     driver adds the inventory of the objects. Helm only logs some failed writes, so
//     run.outcome reads Driver.WriteErr.
//  10. Client.apply sets the expected objects in the inventory.
//
// An upgrade, a rollback and an uninstall follow the same steps. An uninstall uses
// uninstallDriver, which deletes the records last.
//
// # Contexts
//
// Helm's interfaces have no context parameter, so kubeClient, builder, lookupGetter
// and release.Driver hold the context of their action. When it ends, all further
// requests fail and the action returns within milliseconds. Actions are therefore
// started with Run and not with RunWithContext, which returns while the action
// continues.
//
// # Verbs
//
// Install, Upgrade, Rollback, Uninstall, Orphan and Adopt change a release. Repair
// and Verify correct drift from the stored manifest. Sign, Restore, Mark, MarkFailed,
// Record, Tidy, Prune and Test maintain its records.
package helm
