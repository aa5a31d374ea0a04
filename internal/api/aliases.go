package api

// AnnotationAnsibleReconcilePeriod is what an Ansible operator of the
// operator-sdk takes for AnnotationReconcilePeriod. It counts where that is not
// there, so that resources written for one go on meaning what they say.
const AnnotationAnsibleReconcilePeriod = "ansible.operator-sdk/reconcile-period"
