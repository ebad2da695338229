/** What browsers say when there is no room, or none for this page: an answer and no error. */
const NO_ROOM = new Set(['QuotaExceededError', 'NotAllowedError']);

export function isNoRoom(error: unknown): boolean {
  return NO_ROOM.has((error as { name?: string } | null)?.name ?? '');
}
