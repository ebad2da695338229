import { expect, test } from 'vitest';
import { countTests } from './test-report.mjs';

const file = (status, tests) => ({ status, assertionResults: Array.from({ length: tests }) });

test('passed and failed tests are counted as reported', () => {
  const report = { numPassedTests: 5, numFailedTests: 2, testResults: [file('passed', 3), file('failed', 4)] };
  expect(countTests(report, 1)).toEqual({ passed: 5, failed: 2 });
});

test('a file that cannot be loaded counts as one failure', () => {
  const report = { numPassedTests: 5, numFailedTests: 0, testResults: [file('passed', 5), file('failed', 0)] };
  expect(countTests(report, 1)).toEqual({ passed: 5, failed: 1 });
});

test('an error outside of any test counts as one failure', () => {
  const report = { numPassedTests: 5, numFailedTests: 0, testResults: [file('passed', 5)] };
  expect(countTests(report, 1)).toEqual({ passed: 5, failed: 1 });
});

test('a run that leaves no report counts as one failure', () => {
  expect(countTests(undefined, 139)).toEqual({ passed: 0, failed: 1 });
});
