-- Health of a custom resource of any Chartwright kind, for Argo CD.
--
-- Argo CD runs this with `obj`, and without Lua's string library.

-- Reasons of Ready for errors that the operator retries.
local failures = {
  AdoptionFailed = true,
  InstallFailed = true,
  ObjectFailed = true,
  RenderFailed = true,
  RollbackFailed = true,
  UninstallFailed = true,
  UpgradeFailed = true,
}

local function health(status, message)
  return { status = status, message = message }
end

local status = obj.status or {}
local conditions = {}
for _, condition in ipairs(status.conditions or {}) do
  conditions[condition.type] = condition
end

-- holds returns a condition that is True.
local function holds(kind)
  local condition = conditions[kind]
  if condition ~= nil and condition.status == "True" then
    return condition
  end
end

local ready = conditions.Ready
if ready == nil then
  return health("Progressing", "Waiting for the operator")
end
if status.observedGeneration ~= obj.metadata.generation then
  return health("Progressing", "Waiting for the operator to reconcile the change")
end

-- Problems that need a user.
local stalled = holds("Stalled")
if stalled ~= nil then
  return health("Degraded", stalled.message)
end
if ready.status == "False" and failures[ready.reason] then
  return health("Degraded", ready.message)
end
local held = holds("Held")
if held ~= nil and held.reason == "RolledBackAfterFailure" then
  return health("Degraded", held.message)
end

-- Paused and held releases. Sync waves wait for them: return "Healthy" here
-- if they should not.
local paused = holds("Paused")
if paused ~= nil and (ready.status == "True" or ready.reason == "Paused") then
  return health("Suspended", paused.message)
end
if held ~= nil and ready.status == "True" then
  return health("Suspended", held.message)
end

if ready.status ~= "True" then
  return health("Progressing", ready.message)
end
-- The release is ready, and a newer chart waits in the rollout queue.
local update = holds("UpdateAvailable")
if update ~= nil then
  return health("Healthy", update.message)
end
return health("Healthy", ready.message)
