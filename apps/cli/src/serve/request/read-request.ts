import { isDeepStrictEqual } from 'node:util';
import * as v from 'valibot';
import { badField } from '../http/api-error.ts';

/**
 * A body as a schema has it. Fields that the schema does not name are left out: clients send many that change nothing here.
 *
 * @throws {ApiError} 400 with the path of the first field at fault
 */
export function readRequest<S extends v.GenericSchema>(schema: S, body: unknown): v.InferOutput<S> {
  const result = v.safeParse(schema, body, { abortEarly: true });
  if (result.success) return result.output;
  const [issue] = result.issues;
  throw badField(pathOf(issue) || 'the body', wordsOf(issue), issue.received === 'undefined' ? 'missing_field' : 'invalid_value');
}

/** `messages[0].role` */
function pathOf({ path }: v.BaseIssue<unknown>): string {
  const steps = (path ?? []).map(({ key }) => (typeof key === 'number' ? `[${key}]` : `.${String(key)}`));
  return steps.join('').replace(/^\./, '');
}

/** Messages of our schemas go on behind the name of a field; those of the library are put into that form. */
function wordsOf({ message, expected, received, requirement }: v.BaseIssue<unknown>): string {
  if (message.startsWith('must ')) return message;
  if (received === 'undefined') return 'is missing';
  const wanted = expected === null && requirement !== undefined ? String(requirement) : String(expected);
  return `must be ${wanted}, is ${received}`;
}

/**
 * Refuses fields that would change an answer in a way that this server cannot.
 *
 * @param neutral what each of them may hold all the same, because it changes nothing
 */
export function refuseUnsupported(
  body: Readonly<Record<string, unknown>>,
  neutral: Readonly<Record<string, readonly unknown[]>>,
): void {
  for (const [field, values] of Object.entries(neutral)) {
    const value = body[field];
    if (value === undefined || value === null) continue;
    if (values.some((each) => isDeepStrictEqual(value, each))) continue;
    throw badField(field, 'is not supported by this server; leave it out', 'unsupported_parameter');
  }
}
