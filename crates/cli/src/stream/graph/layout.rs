//! Where the boxes of a graph stand: in columns, so that every edge goes from
//! left to right, with few crossings and short edges.
//!
//! Boxes stand in the column after the last of those that they read, and who
//! reads nothing any further stands in the last column. Edges that pass columns
//! have a place of their own there. Boxes are put into the order of what they
//! are connected to, to and fro, and the order with the fewest crossings stays;
//! then each is moved as near to these as the others in its column allow.
//!
//! Source: K. Sugiyama, S. Tagawa, M. Toda, *Methods for Visual Understanding of
//! Hierarchical System Structures*, 1981.

/// What is to be placed.
pub(super) struct Plan {
    pub boxes: Vec<Box>,
    /// From which box to which.
    pub edges: Vec<(usize, usize)>,
}

/// A box, in pixels.
#[derive(Clone, Copy)]
pub(super) struct Box {
    pub width: f64,
    pub height: f64,
    /// Whether it stands in the last column.
    pub is_last: bool,
    /// The first column that it may stand in.
    pub column: usize,
}

/// Where everything stands.
pub(super) struct Layout {
    /// The upper left corner of each box.
    pub boxes: Vec<(f64, f64)>,
    /// The places that each edge passes, as far as a column is wide: left, right
    /// and height.
    pub passes: Vec<Vec<(f64, f64, f64)>>,
    pub width: f64,
    pub height: f64,
}

/// Between columns.
const GAP_COLUMNS: f64 = 84.0;
/// Between boxes of a column.
const GAP_ROWS: f64 = 18.0;
/// What an edge needs that passes a column.
const PASS_HEIGHT: f64 = 6.0;
/// How often the order is gone through.
const SWEEPS: usize = 12;

struct Grid {
    /// Boxes first, then the places where edges pass.
    heights: Vec<f64>,
    columns: Vec<Vec<usize>>,
    /// What each is connected to in the column before and after.
    before: Vec<Vec<usize>>,
    after: Vec<Vec<usize>>,
}

pub(super) fn place(plan: &Plan) -> Layout {
    let columns = columns(plan);
    let count = columns.iter().max().map_or(0, |last| last + 1);
    let mut grid = Grid {
        heights: plan.boxes.iter().map(|it| it.height).collect(),
        columns: vec![Vec::new(); count],
        before: vec![Vec::new(); plan.boxes.len()],
        after: vec![Vec::new(); plan.boxes.len()],
    };
    for (at, column) in columns.iter().enumerate() {
        grid.columns[*column].push(at);
    }
    let ways: Vec<Vec<usize>> = plan
        .edges
        .iter()
        .map(|(from, to)| grid.connect((*from, columns[*from]), (*to, columns[*to])))
        .collect();
    grid.order();
    let middles = grid.middles();

    let mut lefts = Vec::new();
    let mut width = 0.0;
    for column in 0..count {
        let boxes = plan.boxes.iter().zip(&columns);
        let widths = boxes
            .filter(|(_, its)| **its == column)
            .map(|(it, _)| it.width);
        let widest = widths.fold(0.0, f64::max);
        lefts.push((width, width + widest));
        width += widest + GAP_COLUMNS;
    }
    let boxes = plan.boxes.iter().enumerate();
    let boxes = boxes.map(|(at, it)| (lefts[columns[at]].0, middles[at] - it.height / 2.0));
    let passes = ways.iter().zip(&plan.edges).map(|(way, (from, _))| {
        let columns = columns[*from] + 1..;
        let passes = way.iter().zip(columns);
        let pass = |(at, column): (&usize, usize)| (lefts[column].0, lefts[column].1, middles[*at]);
        passes.map(pass).collect()
    });
    let bottoms = middles.iter().zip(&grid.heights);
    Layout {
        boxes: boxes.collect(),
        passes: passes.collect(),
        width: (width - GAP_COLUMNS).max(0.0),
        height: bottoms
            .map(|(y, height)| y + height / 2.0)
            .fold(0.0, f64::max),
    }
}

/// The column of each box.
fn columns(plan: &Plan) -> Vec<usize> {
    let mut columns: Vec<usize> = plan.boxes.iter().map(|it| it.column).collect();
    // Whoever has read something has a column before whoever reads it. The graph
    // has no cycles; the bound holds even if somebody says that it has.
    for _ in 0..plan.boxes.len() {
        let mut is_done = true;
        for (from, to) in &plan.edges {
            if columns[*to] <= columns[*from] {
                columns[*to] = columns[*from] + 1;
                is_done = false;
            }
        }
        if is_done {
            break;
        }
    }
    let last = columns.iter().copied().max().unwrap_or(0);
    for (column, it) in columns.iter_mut().zip(&plan.boxes) {
        if it.is_last {
            *column = last;
        }
    }
    columns
}

impl Grid {
    /// Connects two boxes by places in the columns between them.
    fn connect(&mut self, from: (usize, usize), to: (usize, usize)) -> Vec<usize> {
        let mut way = Vec::new();
        let mut last = from.0;
        for column in from.1 + 1..to.1 {
            let pass = self.heights.len();
            self.heights.push(PASS_HEIGHT);
            self.before.push(Vec::new());
            self.after.push(Vec::new());
            self.columns[column].push(pass);
            self.join(last, pass);
            way.push(pass);
            last = pass;
        }
        self.join(last, to.0);
        way
    }

    fn join(&mut self, left: usize, right: usize) {
        self.after[left].push(right);
        self.before[right].push(left);
    }

    /// Puts each column into the order of what it is connected to.
    fn order(&mut self) {
        let mut rows = vec![0.0; self.heights.len()];
        number(&self.columns, &mut rows);
        let mut best = (self.crossings(&rows), self.columns.clone());
        for sweep in 0..SWEEPS {
            let is_forth = sweep % 2 == 0;
            for step in 1..self.columns.len() {
                let at = if is_forth {
                    step
                } else {
                    self.columns.len() - 1 - step
                };
                let sides = if is_forth { &self.before } else { &self.after };
                let mut column = std::mem::take(&mut self.columns[at]);
                let wish = |it: &usize| mean(&sides[*it], &rows).unwrap_or(rows[*it]);
                let mut wishes: Vec<(f64, usize)> =
                    column.iter().map(|it| (wish(it), *it)).collect();
                wishes.sort_by(|one, other| one.0.total_cmp(&other.0));
                column = wishes.into_iter().map(|(_, it)| it).collect();
                for (row, it) in column.iter().enumerate() {
                    rows[*it] = row as f64;
                }
                self.columns[at] = column;
            }
            let crossings = self.crossings(&rows);
            if crossings < best.0 {
                best = (crossings, self.columns.clone());
            }
        }
        self.columns = best.1;
    }

    /// How many edges cross.
    fn crossings(&self, rows: &[f64]) -> usize {
        let mut crossings = 0;
        for column in &self.columns {
            // The ends of edges in the order of their beginnings: each pair that
            // is the wrong way round is a crossing.
            let mut ends: Vec<usize> = Vec::new();
            for left in column {
                let mut of: Vec<usize> = self.after[*left]
                    .iter()
                    .map(|it| rows[*it] as usize)
                    .collect();
                of.sort_unstable();
                ends.extend(of);
            }
            crossings += inversions(&ends);
        }
        crossings
    }

    /// The height of the middle of each.
    fn middles(&self) -> Vec<f64> {
        let mut middles = vec![0.0; self.heights.len()];
        for column in &self.columns {
            self.settle(column, |_| 0.0, &mut middles);
        }
        for sweep in 0..SWEEPS {
            let is_forth = sweep % 2 == 0;
            for step in 0..self.columns.len() {
                let at = if is_forth {
                    step
                } else {
                    self.columns.len() - 1 - step
                };
                let before = middles.clone();
                let wish = |it: usize| {
                    let (left, right) = (
                        mean(&self.before[it], &before),
                        mean(&self.after[it], &before),
                    );
                    match (left, right) {
                        (Some(left), Some(right)) => f64::midpoint(left, right),
                        (one, other) => one.or(other).unwrap_or(before[it]),
                    }
                };
                self.settle(&self.columns[at], wish, &mut middles);
            }
        }
        let tops = middles
            .iter()
            .zip(&self.heights)
            .map(|(y, height)| y - height / 2.0);
        let top = tops.fold(f64::INFINITY, f64::min);
        middles.iter().map(|middle| middle - top).collect()
    }

    /// Puts what stands in a column as near to where it wants to be as the
    /// distances allow: those that are in each other's way go to the mean of what
    /// they want.
    fn settle(&self, column: &[usize], wish: impl Fn(usize) -> f64, middles: &mut [f64]) {
        let mut offset = 0.0;
        let mut offsets = Vec::with_capacity(column.len());
        // Groups of neighbours: the sum of their wishes without offsets, and how many.
        let mut groups: Vec<(f64, usize)> = Vec::new();
        let mut last: Option<usize> = None;
        for it in column {
            if let Some(last) = last {
                offset += f64::midpoint(self.heights[last], self.heights[*it]) + GAP_ROWS;
            }
            last = Some(*it);
            offsets.push(offset);
            let mut group = (wish(*it) - offset, 1);
            while let Some((sum, count)) = groups.last() {
                if sum / (*count as f64) <= group.0 / f64::from(group.1) {
                    break;
                }
                group = (group.0 + sum, group.1 + *count as i32);
                groups.pop();
            }
            groups.push((group.0, group.1 as usize));
        }
        let mut rest = column.iter().zip(&offsets);
        for (sum, count) in groups {
            for (it, offset) in rest.by_ref().take(count) {
                middles[*it] = sum / count as f64 + offset;
            }
        }
    }
}

fn number(columns: &[Vec<usize>], rows: &mut [f64]) {
    for column in columns {
        for (row, it) in column.iter().enumerate() {
            rows[*it] = row as f64;
        }
    }
}

fn mean(of: &[usize], values: &[f64]) -> Option<f64> {
    let sum: f64 = of.iter().map(|it| values[*it]).sum();
    (!of.is_empty()).then(|| sum / of.len() as f64)
}

/// How many pairs are the wrong way round.
fn inversions(numbers: &[usize]) -> usize {
    let size = numbers.iter().max().map_or(0, |most| most + 1);
    // Counts of those that were seen, in a tree of sums (Fenwick).
    let mut sums = vec![0; size + 1];
    let mut inversions = 0;
    for (seen, number) in numbers.iter().enumerate() {
        let mut at = number + 1;
        let mut not_greater = 0;
        while at > 0 {
            not_greater += sums[at];
            at &= at - 1;
        }
        inversions += seen - not_greater;
        let mut at = number + 1;
        while at <= size {
            sums[at] += 1;
            at += at & at.wrapping_neg();
        }
    }
    inversions
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inversions_are_pairs_the_wrong_way_round() {
        assert_eq!(inversions(&[0, 1, 1, 2]), 0);
        assert_eq!(inversions(&[3, 2, 1, 0]), 6);
        assert_eq!(inversions(&[2, 0, 2, 1]), 3);
        assert_eq!(inversions(&[]), 0);
    }

    /// Boxes in a column do not overlap, and edges go to the right.
    fn check(plan: &Plan) -> Layout {
        let layout = place(plan);
        for (at, one) in plan.boxes.iter().enumerate() {
            let (x, y) = layout.boxes[at];
            assert!(x >= 0.0 && y >= -1e-6, "{at}: {x} {y}");
            assert!(x + one.width <= layout.width + 1e-6);
            assert!(y + one.height <= layout.height + 1e-6);
            for other in at + 1..plan.boxes.len() {
                let (x2, y2) = layout.boxes[other];
                let apart = y + one.height < y2 || y2 + plan.boxes[other].height < y;
                assert!(x != x2 || apart, "{at} and {other} overlap");
            }
        }
        for (from, to) in &plan.edges {
            assert!(layout.boxes[*from].0 < layout.boxes[*to].0);
        }
        layout
    }

    fn boxes(count: usize) -> Vec<Box> {
        let it = Box {
            width: 100.0,
            height: 40.0,
            is_last: false,
            column: 0,
        };
        vec![it; count]
    }

    #[test]
    fn nothing_one_and_many() {
        let nothing = Plan {
            boxes: Vec::new(),
            edges: Vec::new(),
        };
        assert_eq!(check(&nothing).height, 0.0);
        let one = Plan {
            boxes: boxes(1),
            edges: Vec::new(),
        };
        let layout = check(&one);
        assert_eq!((layout.width, layout.height), (100.0, 40.0));
        // A hundred chains of three, all of which end in one box.
        let edges = (0..100).flat_map(|chain| {
            let first = chain * 3;
            [(first, first + 1), (first + 1, first + 2), (first + 2, 300)]
        });
        check(&Plan {
            boxes: boxes(301),
            edges: edges.collect(),
        });
    }

    #[test]
    fn edges_that_need_not_cross_do_not() {
        // 0 → 5, 1 → 4, 2 → 3, and the long one 0 → 6.
        let mut plan = Plan {
            boxes: boxes(7),
            edges: vec![(0, 5), (1, 4), (2, 3), (5, 6), (0, 6)],
        };
        plan.boxes[6].is_last = true;
        let layout = check(&plan);
        let y = |at: usize| layout.boxes[at].1;
        assert!((y(0) < y(1)) == (y(5) < y(4)) && (y(1) < y(2)) == (y(4) < y(3)));
        assert_eq!(layout.passes[4].len(), 1);
    }
}
