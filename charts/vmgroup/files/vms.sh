#!/bin/sh
# Manages the virtual machines of one group in a vSphere folder of its own.
#
#   vms.sh ensure    clones, resizes, powers on or destroys machines until they match the group
#   vms.sh destroy   destroys all machines and the folder
#   vms.sh check     fails if the machines do not match the group; changes nothing
#
# The script compares vSphere with the wanted state, so it can be interrupted at any point and run again.
# Machines are <VM_NAME>-0, -1 and so on; other machines in the folder are not changed. The script ends when a
# call of govc fails. Environment variables:
#
#   GOVC_URL, GOVC_USERNAME, GOVC_PASSWORD and the other variables of govc
#   VM_PARENT, VM_FOLDER    the parent folder, which must exist, and the name of the group's folder
#   VM_NAME                 prefix of the machines' names
#   VM_TEMPLATE             virtual machine or template to clone
#   VM_CPU, VM_MEMORY       processors and megabytes of each machine
#   VM_REPLICAS             wanted number of machines
set -eu

say() {
  printf 'vms: %s\n' "$*"
}

fail() {
  printf 'vms: %s\n' "$*" >&2
  exit 1
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

# property prints a property of a machine.
property() {
  govc object.collect -s "$1" "$2"
}

# fits reports whether a machine has the wanted size.
fits() {
  cpu=$(property "$1" config.hardware.numCPU) || return 2
  memory=$(property "$1" config.hardware.memoryMB) || return 2
  [ "$cpu" = "$VM_CPU" ] && [ "$memory" = "$VM_MEMORY" ]
}

# fit resizes a machine, which must be powered off for it, and powers it on.
fit() {
  power=$(property "$1" runtime.powerState)
  code=0
  fits "$1" || code=$?
  case $code in
    0) ;;
    1)
      if [ "$power" != poweredOff ]; then
        # Shut down the guest; power off machines whose guest cannot be shut down.
        govc vm.power -s -force "$1" >/dev/null
        power=poweredOff
      fi
      govc vm.change -vm "$1" -c "$VM_CPU" -m "$VM_MEMORY"
      say "resized ${1##*/}"
      ;;
    *) exit 1 ;;
  esac
  if [ "$power" != poweredOn ]; then
    govc vm.power -on "$1" >/dev/null
    say "turned ${1##*/} on"
  fi
}

ensure() {
  group=$(folder)
  if [ -z "$group" ]; then
    govc folder.create "$VM_PARENT/$VM_FOLDER"
    group=$(folder)
    say "made the folder $group"
  fi
  there=$(machines "$group")

  wanted=0
  while [ "$wanted" -lt "$VM_REPLICAS" ]; do
    machine=$(path_of "$wanted" "$there")
    if [ -z "$machine" ]; then
      machine=$group/$VM_NAME-$wanted
      govc vm.clone -vm "$VM_TEMPLATE" -folder "$group" -c "$VM_CPU" -m "$VM_MEMORY" -on=false "$VM_NAME-$wanted" >/dev/null
      say "cloned ${machine##*/} from $VM_TEMPLATE"
    fi
    fit "$machine"
    wanted=$((wanted + 1))
  done

  printf '%s\n' "$there" | while read -r surplus machine; do
    if [ -n "$machine" ] && [ "$surplus" -ge "$VM_REPLICAS" ]; then
      govc vm.destroy "$machine" </dev/null
      say "destroyed ${machine##*/}"
    fi
  done
  say "running, as wanted: $VM_REPLICAS"
}

destroy() {
  group=$(folder)
  if [ -z "$group" ]; then
    say "there is nothing to destroy"
    return
  fi
  # Repeat until the folder is empty: a run that was just interrupted may have started to clone another machine.
  # After the folder is deleted, nothing can be cloned into it.
  there=$(machines "$group")
  while [ -n "$there" ]; do
    printf '%s\n' "$there" | while read -r _ machine; do
      govc vm.destroy "$machine" </dev/null
      say "destroyed ${machine##*/}"
    done
    there=$(machines "$group")
  done
  # Destroying a folder destroys its contents, so a folder that is not empty is kept.
  others=$(govc ls "$group")
  if [ -n "$others" ]; then
    say "the folder $group stays: somebody else has put something there"
    return
  fi
  govc object.destroy "$group" >/dev/null
  say "destroyed the folder $group"
}

check() {
  group=$(folder)
  if [ -z "$group" ]; then
    fail "there is no folder $VM_PARENT/$VM_FOLDER"
  fi
  there=$(machines "$group")
  wanted=0
  while [ "$wanted" -lt "$VM_REPLICAS" ]; do
    machine=$(path_of "$wanted" "$there")
    if [ -z "$machine" ]; then
      fail "there is no $VM_NAME-$wanted"
    fi
    power=$(property "$machine" runtime.powerState)
    if [ "$power" != poweredOn ]; then
      fail "${machine##*/} is $power"
    fi
    fits "$machine" || fail "${machine##*/} does not have the wanted size"
    wanted=$((wanted + 1))
  done
  printf '%s\n' "$there" | while read -r surplus machine; do
    if [ -n "$machine" ] && [ "$surplus" -ge "$VM_REPLICAS" ]; then
      fail "${machine##*/} is surplus"
    fi
  done
  say "running, as wanted: $VM_REPLICAS"
}

: "${VM_PARENT:?is not set}" "${VM_FOLDER:?is not set}" "${VM_NAME:?is not set}"
# The error texts do not contain the value, because it may hold a password. govc would print it.
case ${GOVC_URL:-} in
  '') fail "the Secret has no VC_HOST" ;;
  *@*) fail "VC_HOST holds more than a host: give the user as VC_USER and the password as VC_PASS" ;;
esac
case ${1:-} in
  ensure | destroy | check) ;;
  *) fail "expected ensure, destroy or check" ;;
esac

# Try a wrong password only once, so that the account is not locked.
govc about >/dev/null
trap 'govc session.logout >/dev/null 2>&1 || :' EXIT
# Process 1 of a container ignores signals without a handler.
trap 'exit 143' TERM INT
"$1"
