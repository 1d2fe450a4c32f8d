"""What the user asks for outside of a kernel: environment variables, targets, switches; and the log and files of the
package."""
