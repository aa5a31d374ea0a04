package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := newRoot().ExecuteContext(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "Error:", err)
		os.Exit(1)
	}
}

func newRoot() *cobra.Command {
	var options options
	root := &cobra.Command{
		Use:           "image",
		Short:         "Build images without a container engine",
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	build := &cobra.Command{
		Use:   "build",
		Short: "Build the images for the tests with containers; requires root and mmdebstrap",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return buildAll(cmd.Context(), options) },
	}
	build.Flags().StringVar(&options.out, "out", "bin/images", "`folder` for the archives; other archives in it are removed")
	build.Flags().StringVar(&options.bin, "bin", "bin", "`folder` with the programs")
	build.Flags().StringVar(&options.samples, "samples", "config/samples", "`folder` with custom resources that name the images")
	build.Flags().StringVar(&options.operator, "operator", "", "`folder` with a layout of the operator's image (default: an image with the program in --bin)")
	requirements := &cobra.Command{
		Use:   "requirements",
		Short: "Print what this machine does not have for building the images; exit with code 1 if something is missing",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return missing(cmd.Context(), options)
		},
	}
	requirements.Flags().StringVar(&options.out, "out", "bin/images", "`folder` for the archives")
	root.AddCommand(build, requirements, newLayout(), newCheck(), newPush())
	return root
}
