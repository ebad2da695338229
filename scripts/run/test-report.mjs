import { relative } from 'node:path';

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

/**
 * Names what failed, so that nobody has to look for it in the output of ten thousand tests.
 *
 * @param {{ testResults: { name: string, status: string, message: string,
 *   assertionResults: { status: string, fullName: string, failureMessages: string[] }[] }[] } | undefined} report of vitest's json reporter
 * @param {string} root the folder that paths of files are relative to
 * @returns {string[]} a line for each failed test and each file that could not be loaded: file, test, first line of the reason
 */
export function failures(report, root) {
  return (report?.testResults ?? []).flatMap((file) => {
    const path = relative(root, file.name);
    if (file.status === 'failed' && file.assertionResults.length === 0) return [`${path}: ${firstLine(file.message)}`];
    return file.assertionResults
      .filter((test) => test.status === 'failed')
      .map((test) => `${path} > ${test.fullName}: ${firstLine(test.failureMessages[0])}`);
  });
}

const firstLine = (text) => (text ?? '').split('\n', 1)[0];
