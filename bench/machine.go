package main

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"strings"
)

// A machine is where a run took place, and with what.
type machine struct {
	CPU      string            `json:"cpu"`
	Cores    int               `json:"cores"`
	Virtual  bool              `json:"virtual"`
	Kernel   string            `json:"kernel"`
	Go       string            `json:"go"`
	Versions map[string]string `json:"versions"` // of servers, by name
}

// thisMachine describes where it runs.
func thisMachine() machine {
	cpuinfo, _ := os.ReadFile("/proc/cpuinfo")
	kernel, _ := os.ReadFile("/proc/sys/kernel/osrelease")
	m := machine{
		Cores:    runtime.NumCPU(),
		Kernel:   "Linux " + strings.TrimSpace(string(kernel)),
		Go:       strings.TrimPrefix(runtime.Version(), "go"),
		Versions: versions(),
	}
	m.CPU, m.Virtual = parseCPU(string(cpuinfo))
	return m
}

// parseCPU takes the model, and whether there is a hypervisor under the kernel,
// from /proc/cpuinfo, which on some architectures names no model.
func parseCPU(cpuinfo string) (model string, virtual bool) {
	model = runtime.GOARCH
	for _, line := range strings.Split(cpuinfo, "\n") {
		key, value, _ := strings.Cut(line, ":")
		switch value = strings.TrimSpace(value); strings.TrimSpace(key) {
		case "model name":
			model = value
		case "flags":
			virtual = strings.Contains(" "+value+" ", " hypervisor ")
		case "": // the end of the first processor
			return model, virtual
		}
	}
	return model, virtual
}

func (m machine) String() string {
	kind := ""
	if m.Virtual {
		kind = " (virtual machine)"
	}
	return fmt.Sprintf("%s, %d cores%s, %s, Go %s", m.CPU, m.Cores, kind, m.Kernel, m.Go)
}

// versions tells what the servers are built from.
func versions() map[string]string {
	v := map[string]string{}
	modules := map[string]string{} // names of servers by their modules
	for _, e := range registry {
		if e.module != "" {
			modules[e.module] = e.name
		}
	}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, d := range info.Deps {
			if name := modules[d.Path]; name != "" {
				v[name] = d.Version
			}
		}
	}
	if out, err := exec.Command("git", "-C", "..", "describe", "--always", "--dirty").Output(); err == nil {
		v["rondo"] = strings.TrimSpace(string(out))
	}
	if out, err := exec.Command("redis-server", "--version").Output(); err == nil {
		for _, word := range strings.Fields(string(out)) {
			if version, ok := strings.CutPrefix(word, "v="); ok {
				v["redis-server"] = version
			}
		}
	}
	if out, err := exec.Command("gcc", "-dumpfullversion").Output(); err == nil {
		v["gcc"] = strings.TrimSpace(string(out))
	}
	return v
}
