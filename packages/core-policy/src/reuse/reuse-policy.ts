/**
 * How a buffer takes part in prefix reuse.
 *
 * - `required`: limits how long a match can be; published on commit and shared.
 * - `optional`: never limits a match; published on commit, used only by a request that selects its group.
 * - `private`: never limits a match, never published; it belongs to one request alone.
 */
export type ReusePolicy = 'required' | 'optional' | 'private';
