// The snapshots of one request, in the order of their positions: a table `[numRequests + 1]` of first entries, and entries
// (position, page) behind it. A position is a number of tokens of this call, from 1 on.

struct Snapshots {
  // Of the next one; 0 when there is none left.
  position: u32,
  page: u32,
  entry: u32,
  end: u32,
}

fn snapshotsOf(request: u32) -> Snapshots {
  if (params.numSnapshots == 0u) {
    return Snapshots();
  }
  let at = params.snapshotsOffset + request;
  return snapshotAt(tables[at], tables[at + 1u]);
}

fn following(snapshots: Snapshots) -> Snapshots {
  return snapshotAt(snapshots.entry + 1u, snapshots.end);
}

fn snapshotAt(entry: u32, end: u32) -> Snapshots {
  if (entry >= end) {
    return Snapshots(0u, 0u, end, end);
  }
  let at = params.snapshotsOffset + params.numRequests + 1u + 2u * entry;
  return Snapshots(tables[at], tables[at + 1u], entry, end);
}
