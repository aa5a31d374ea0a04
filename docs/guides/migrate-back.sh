#!/bin/sh
# migrate-back.sh hands the release of a custom resource back to operator-sdk:
#   kind=nginxes.example.com namespace=default name=web sh -eu migrate-back.sh
set -eu
: "${kind:?}" "${namespace:?}" "${name:?}"

k() { kubectl --namespace "$namespace" "$@"; }
release=$(k get "$kind" "$name" -o jsonpath='{.status.release.name}')

# ours prints Chartwright's labels or annotations of an object, each with a trailing "-".
ours() { k get "$1" -o go-template="{{range \$key, \$value := .metadata.$2}}{{println \$key}}{{end}}" | sed -n 's|^chartwright.dev/.*|&-|p'; }

# Replace the finalizer.
at=0
for finalizer in $(k get "$kind" "$name" -o jsonpath='{.metadata.finalizers[*]}'); do
  if [ "$finalizer" = chartwright.dev/uninstall ]; then
    k patch "$kind" "$name" --type=json -p "[
      {\"op\": \"test\", \"path\": \"/metadata/finalizers/$at\", \"value\": \"$finalizer\"},
      {\"op\": \"replace\", \"path\": \"/metadata/finalizers/$at\", \"value\": \"helm.sdk.operatorframework.io/uninstall-release\"}]"
  fi
  at=$((at + 1))
done

# Set the owner of the release records, and remove Chartwright's labels and annotations.
api=$(k get "$kind" "$name" -o jsonpath='{.apiVersion}')
title=$(k get "$kind" "$name" -o jsonpath='{.kind}')
uid=$(k get "$kind" "$name" -o jsonpath='{.metadata.uid}')
for record in $(k get secrets -l "owner=helm,name=$release" -o name); do
  # A second run of this script finds no keys.
  keys=$(ours "$record" labels)
  # shellcheck disable=SC2086 # one argument for each key
  [ -z "$keys" ] || k label "$record" $keys
  keys=$(ours "$record" annotations)
  # shellcheck disable=SC2086
  [ -z "$keys" ] || k annotate "$record" $keys
  k patch "$record" --type=merge -p "{\"metadata\": {\"ownerReferences\": [{\"apiVersion\": \"$api\", \"kind\": \"$title\",
    \"name\": \"$name\", \"uid\": \"$uid\", \"controller\": true, \"blockOwnerDeletion\": true}]}}"
done

# Remove Chartwright's labels and annotations from the objects, too.
helm --namespace "$namespace" get manifest "$release" | k label -f - chartwright.dev/owner-uid- chartwright.dev/operator-
helm --namespace "$namespace" get manifest "$release" | k annotate -f - chartwright.dev/owner- chartwright.dev/applied-

# Clear the status.
k patch "$kind" "$name" --subresource=status --type=merge -p '{"status": null}'
