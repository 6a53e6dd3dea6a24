//go:build !pluginhost

package pluginhost

// Built without plugin-host plugin build the runtime starts in each execution, which takes milliseconds.
const start = ""

func reseed() {}
