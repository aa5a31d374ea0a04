#!/bin/sh
# Manages the virtual machines of one group in a vSphere folder of its own.
#
#   vms.sh prepare   creates the folder, unless machines were created before
#   vms.sh ensure    clones, powers on, resizes or destroys machines until they match the group
#   vms.sh check     fails if the machines do not match the group; changes nothing
#   vms.sh destroy   destroys all machines and the folder
#
# The second argument "scheduled" makes ensure and check do nothing before the group is created and during its deletion.
#
# The script compares vSphere with the group, so it can be interrupted at any point and run again, also while
# another run is in progress. Machines are <VM_NAME>-0, -1 and so on; other machines in the folder are not changed.
# Environment variables:
#
#   GOVC_URL, GOVC_USERNAME, GOVC_PASSWORD and the other variables of govc
#   VM_SECRET               name of the Secret with the first three, for error messages
#   VM_PARENT, VM_FOLDER    the parent folder, which must exist, and the name of the group's folder
#   VM_NAME                 prefix of the machines' names
#   VM_TEMPLATE             virtual machine or template to clone
#   VM_CPU, VM_MEMORY       processors and megabytes of each machine
#   VM_REPLICAS             wanted number of machines
#   VM_PARALLEL             maximum number of machines that are cloned at the same time
#   VM_RECORDS              folder with the records of the chart: the file location or state exists if machines may
#                           exist, the file deletion if they are being destroyed
#   VM_REPORT               file for the result: the container's termination message
set -eu

say() {
  printf 'vms: %s\n' "$*"
  printf '%s\n' "$*" >>"$work/done"
}

complain() {
  printf 'vms: %s\n' "$*" >&2
}

fail() {
  complain "$@"
  exit 1
}

# created reports whether machines may exist. The chart writes its record after prepare and before the first clone.
created() {
  [ -e "$VM_RECORDS/location" ] || [ -e "$VM_RECORDS/state" ]
}

# folder prints the path of the group's folder, or nothing if it does not exist. It checks the parent first: govc
# lists a missing folder like an empty one, so a misspelled parent would look like a group without machines.
folder() {
  govc folder.info "$VM_PARENT" >/dev/null || return 1
  folders=$(govc ls -t Folder "$VM_PARENT") || return 1
  printf '%s\n' "$folders" | while IFS= read -r path; do
    if [ "${path##*/}" = "$VM_FOLDER" ]; then
      printf '%s\n' "$path"
    fi
  done
}

# machines prints the number and path of each machine of the group in a folder.
machines() {
  paths=$(govc ls -t VirtualMachine "$1") || return 1
  printf '%s\n' "$paths" | while IFS= read -r path; do
    name=${path##*/}
    number=${name#"$VM_NAME"-}
    case $number in
      "$name" | '' | *[!0-9]* | 0?*) ;;
      *) printf '%s %s\n' "$number" "$path" ;;
    esac
  done
}

# path_of prints the path of the machine with a number from the output of machines, or nothing.
path_of() {
  printf '%s\n' "$2" | while read -r number path; do
    if [ "$number" = "$1" ]; then
      printf '%s\n' "$path"
    fi
  done
}

# inspect sets the variables power, cpu and memory to the properties of a machine.
inspect() {
  properties=$(govc object.collect "$1" runtime.powerState config.hardware.numCPU config.hardware.memoryMB) || return 1
  power='' cpu='' memory=''
  while read -r property _ value; do
    case $property in
      runtime.powerState) power=$value ;;
      config.hardware.numCPU) cpu=$value ;;
      config.hardware.memoryMB) memory=$value ;;
    esac
  done <<END
$properties
END
}

fits() {
  [ "$cpu" = "$VM_CPU" ] && [ "$memory" = "$VM_MEMORY" ]
}

turn_on() {
  if govc vm.power -on "$1" >/dev/null 2>"$work/${1##*/}"; then
    say "turned ${1##*/} on"
  elif ! inspect "$1" 2>/dev/null || [ "$power" != poweredOn ]; then
    cat "$work/${1##*/}" >&2
    return 1
  fi
}

# clone clones and powers on the machine with a number.
clone() {
  name=$VM_NAME-$1
  if govc vm.clone -vm "$VM_TEMPLATE" -folder "$group" -c "$VM_CPU" -m "$VM_MEMORY" -on=false "$name" >/dev/null 2>"$work/$name"; then
    say "cloned $name from $VM_TEMPLATE"
  elif inspect "$group/$name" 2>/dev/null; then
    # Another run cloned it in the meantime, or the response was lost.
    say "$name exists already"
    [ "$power" != poweredOn ] || return 0
  else
    cat "$work/$name" >&2
    return 1
  fi
  turn_on "$group/$name"
}

# clone_share clones every VM_PARALLEL-th missing machine, starting with the given one.
clone_share() {
  trap - EXIT
  trap 'exit 143' TERM INT
  code=0
  place=0
  for number in $missing; do
    if [ $((place % VM_PARALLEL)) -eq "$1" ]; then
      clone "$number" || code=1
    fi
    place=$((place + 1))
  done
  exit "$code"
}

# settle makes an existing machine match the group. While anything has failed, it resizes nothing: a resize stops
# the machine, and one machine at most is stopped.
settle() {
  inspect "$1" || return 1
  if ! fits; then
    if [ "$code" -ne 0 ]; then
      complain "${1##*/} is not resized because of the failure above"
      return 1
    fi
    if [ "$power" != poweredOff ]; then
      # Shut down the guest; power off machines whose guest cannot be shut down.
      govc vm.power -s -force "$1" >/dev/null || return 1
      power=poweredOff
    fi
    govc vm.change -vm "$1" -c "$VM_CPU" -m "$VM_MEMORY" || return 1
    say "resized ${1##*/}"
  fi
  [ "$power" = poweredOn ] || turn_on "$1"
}

# existing_folder sets the variable group to the path of the group's folder.
existing_folder() {
  group=$(folder)
  [ -n "$group" ] || fail "the folder $VM_PARENT/$VM_FOLDER does not exist: it was deleted, or the Secret $VM_SECRET now names another vCenter. Correct the Secret; to start again without the old machines, delete the VmGroup and create it again"
}

prepare() {
  group=$(folder)
  if [ -n "$group" ]; then
    return
  fi
  if created; then
    existing_folder
  fi
  # If the location is wrong, the template is usually missing there. Without a folder, the location can be corrected.
  found=$(govc vm.info "$VM_TEMPLATE")
  [ -n "$found" ] || fail "the template $VM_TEMPLATE does not exist"
  govc folder.create "$VM_PARENT/$VM_FOLDER"
  say "created the folder $VM_PARENT/$VM_FOLDER"
}

ensure() {
  existing_folder
  before=$(machines "$group")
  code=0

  missing=
  number=0
  while [ "$number" -lt "$VM_REPLICAS" ]; do
    [ -n "$(path_of "$number" "$before")" ] || missing="$missing $number"
    number=$((number + 1))
  done
  if [ -n "$missing" ]; then
    share=0
    while [ "$share" -lt "$VM_PARALLEL" ]; do
      clone_share "$share" &
      clones="$clones $!"
      share=$((share + 1))
    done
    for process in $clones; do
      wait "$process" || code=1
    done
    clones=
  fi

  now=$(machines "$group")
  ready=0
  number=0
  while [ "$number" -lt "$VM_REPLICAS" ]; do
    machine=$(path_of "$number" "$now")
    if [ -n "$machine" ] && settle "$machine"; then
      ready=$((ready + 1))
    else
      code=1
    fi
    number=$((number + 1))
  done

  # Only machines that existed at the start: those of a newer, larger group that is created meanwhile stay.
  while read -r number machine; do
    if [ -n "$machine" ] && [ "$number" -ge "$VM_REPLICAS" ]; then
      if govc vm.destroy "$machine" </dev/null; then
        say "destroyed ${machine##*/}"
      else
        code=1
      fi
    fi
  done <<END
$before
END
  return "$code"
}

check() {
  existing_folder
  now=$(machines "$group")
  code=0
  ready=0
  number=0
  while [ "$number" -lt "$VM_REPLICAS" ]; do
    machine=$(path_of "$number" "$now")
    if [ -z "$machine" ]; then
      complain "$VM_NAME-$number does not exist"
    elif ! inspect "$machine"; then
      complain "$VM_NAME-$number cannot be read"
    elif ! fits; then
      complain "$VM_NAME-$number has $cpu CPU and $memory MiB"
    elif [ "$power" != poweredOn ]; then
      complain "$VM_NAME-$number is $power"
    else
      ready=$((ready + 1))
    fi
    number=$((number + 1))
  done
  [ "$ready" -eq "$VM_REPLICAS" ] || code=1
  while read -r number machine; do
    if [ -n "$machine" ] && [ "$number" -ge "$VM_REPLICAS" ]; then
      complain "${machine##*/} is surplus"
      code=1
    fi
  done <<END
$now
END
  return "$code"
}

# destroy_machines destroys all machines in a folder. It repeats this until no machine is left, because a run that was
# just interrupted may have started to clone another one.
destroy_machines() {
  there=$(machines "$1")
  while [ -n "$there" ]; do
    printf '%s\n' "$there" | while read -r _ machine; do
      govc vm.destroy "$machine" </dev/null
      say "destroyed ${machine##*/}"
    done
    there=$(machines "$1")
  done
}

destroy() {
  if ! group=$(folder); then
    if created; then
      return 1
    fi
    # The parent may be missing. No machine was created anywhere.
    group=
  fi
  if [ -z "$group" ]; then
    say "there is nothing to destroy"
    return
  fi
  destroy_machines "$group"
  # Destroying a folder destroys its contents, so a folder that is not empty stays. Only prepare creates the folder,
  # so a repair that still runs fails once the folder is gone, or has another name.
  others=$(govc ls "$group")
  if [ -n "$others" ]; then
    name=$VM_FOLDER-$(date -u +%Y%m%d%H%M%S)
    govc object.rename "$group" "$name" >/dev/null
    group=${group%/*}/$name
    destroy_machines "$group"
    others=$(govc ls "$group")
  fi
  if [ -n "$others" ]; then
    say "the folder stays as $name: it contains objects that do not belong to the group"
    return
  fi
  govc object.destroy "$group" >/dev/null
  say "destroyed the folder $group"
}

# finish ends the clones in progress when their current call of govc returns, prints the errors, and writes the result.
finish() {
  result=$?
  trap - EXIT
  trap '' TERM INT
  for process in $clones; do
    kill "$process" 2>/dev/null || :
  done
  if [ -n "$clones" ]; then
    printf 'vms: interrupted: waiting for the clones in progress\n'
  fi
  wait
  if [ -n "$session" ]; then
    govc session.logout >/dev/null 2>&1 || :
  fi
  cat "$work/errors" >&3
  if [ -n "$ready" ]; then
    printf 'vms: %s of %s running\n' "$ready" "$VM_REPLICAS"
  fi
  if [ -n "${VM_REPORT:-}" ]; then
    report >"$VM_REPORT"
  fi
  rm -rf "$work"
  exit "$result"
}

# report prints the result. The VmGroup's status has the number that it starts with.
report() {
  if [ "$result" -eq 0 ] && [ -n "$ready" ]; then
    printf '%s running, of %s CPU and %s GiB each, from %s\n' "$ready" "$VM_CPU" $((VM_MEMORY / 1024)) "$VM_TEMPLATE"
  elif [ -n "$ready" ]; then
    printf '%s of %s running\n' "$ready" "$VM_REPLICAS"
  fi
  if [ "$result" -eq 0 ]; then
    tail -c 1000 "$work/done"
  else
    tail -c 1000 "$work/errors"
  fi
}

: "${VM_PARENT:?is not set}" "${VM_FOLDER:?is not set}" "${VM_NAME:?is not set}"
case ${1:-} in
  prepare | ensure | check | destroy) ;;
  *) fail "expected prepare, ensure, check or destroy" ;;
esac

work=$(mktemp -d)
: >"$work/done"
: >"$work/errors"
clones='' session='' ready=''
exec 3>&2 2>>"$work/errors"
trap finish EXIT
# Process 1 of a container ignores signals without a handler.
trap 'exit 143' TERM INT

if [ "${2:-}" = scheduled ]; then
  if [ -e "$VM_RECORDS/deletion" ]; then
    say "the group is being deleted"
    exit 0
  fi
  if ! created; then
    say "the group is not created yet"
    exit 0
  fi
fi
# The error texts do not contain the value, because it may hold a password. govc would print it.
case ${GOVC_URL:-} in
  *@*) fail "VC_HOST in the Secret $VM_SECRET is more than a host: set the user as VC_USER and the password as VC_PASS" ;;
esac
# Try a wrong password only once, so that the account is not locked.
if [ -z "${GOVC_URL:-}" ]; then
  complain "the Secret $VM_SECRET does not exist, or has no VC_HOST"
elif govc about >/dev/null; then
  session=open
fi
if [ -z "$session" ] && [ "$1" = destroy ] && ! created; then
  say "no machine was created: there is nothing to destroy"
  exit 0
fi
[ -n "$session" ] || exit 1
"$1"
