package api

// FieldManagerCLI is the manager name of what people ask for by "kubectl
// chartwright", so that other tools can be told to leave it alone.
const FieldManagerCLI = FieldManager + "-cli"
