package main

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
)

// missingPackages returns the Debian packages whose programs are not there.
func missingPackages() []string {
	var missing []string
	for _, need := range [][2]string{
		{"ip", "iproute2"}, {"iptables-restore", "iptables"}, {"chromium", "chromium"}, {"nginx", "nginx-light"},
	} {
		if _, err := exec.LookPath(need[0]); err != nil {
			missing = append(missing, need[1])
		}
	}
	if exec.Command("python3", "-m", "pip", "--version").Run() != nil {
		missing = append(missing, "python3", "python3-pip")
	}
	return missing
}

// installSystemPackages adds what is missing if it may. Otherwise it says what
// to install and goes on, because most tests need none of it.
func installSystemPackages(out io.Writer) error {
	missing := missingPackages()
	if len(missing) == 0 {
		return nil
	}
	names := strings.Join(missing, " ")
	if _, err := exec.LookPath("apt-get"); err != nil || os.Geteuid() != 0 {
		fmt.Fprintf(out,
			"missing on this machine: %s; install them as root (Debian: apt-get install %s), the tests with network namespaces, a browser or nginx need them\n", names, names)
		return nil
	}
	fmt.Fprintf(out, "installing the Debian packages %s…\n", names)
	for _, args := range [][]string{{"update", "-qq"}, append([]string{"install", "-y", "-qq", "--no-install-recommends"}, missing...)} {
		cmd := exec.Command("apt-get", args...)
		cmd.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive")
		if printed, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("running apt-get %s: %w\n%s", args[0], err, printed)
		}
	}
	return nil
}
