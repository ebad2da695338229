/**
 * The endpoint of one of several engines that serve one model: its rank is added to the TCP port, or to the name of any other
 * endpoint. Rank 0, and a port that the system chooses, stay as they are.
 */
export function endpointOfRank(endpoint: string, dataParallelRank: number): string {
  if (dataParallelRank === 0) return endpoint;
  if (!endpoint.startsWith('tcp:')) return `${endpoint}_dp${dataParallelRank}`;
  return endpoint.replace(/\d+$/, (port) => String(Number(port) + dataParallelRank));
}

/** Whether a socket waits at an endpoint for others to connect; else it connects to where somebody waits. */
export function isBound(endpoint: string): boolean {
  return endpoint.includes('*') || endpoint.includes('::') || /^(?:ipc|inproc):/.test(endpoint);
}
