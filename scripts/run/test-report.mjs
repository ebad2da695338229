/**
 * Adds up what one run of a suite reports.
 *
 * A file that could not even be loaded has no test to fail, and an error outside of any test leaves none: both count as one
 * failure, so that nothing broken is ever counted as nothing.
 *
 * @param {{ numPassedTests: number, numFailedTests: number, testResults: { status: string, assertionResults: unknown[] }[] }
 *   | undefined} report of vitest's json reporter; undefined when it wrote none
 * @param {number} exitCode of the run
 * @returns {{ passed: number, failed: number }} counts of tests
 */
export function countTests(report, exitCode) {
  const unloadable =
    report?.testResults.filter((file) => file.status === 'failed' && file.assertionResults.length === 0).length ?? 0;
  const failed = (report?.numFailedTests ?? 0) + unloadable;
  return { passed: report?.numPassedTests ?? 0, failed: failed === 0 && exitCode !== 0 ? 1 : failed };
}
