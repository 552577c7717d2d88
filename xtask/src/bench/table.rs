//! What the blocks came to: medians, ratios, and their spread, for machines, for people, and for the page.

use serde_json::{Value, json};

use super::block::Cost;
use super::contest::{Contest, Goal};

/// The same number from several blocks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Spread {
    pub(super) median: f64,
    pub(super) lowest: f64,
    pub(super) highest: f64,
}

impl Spread {
    /// `None` without numbers.
    fn of(numbers: impl IntoIterator<Item = f64>) -> Option<Self> {
        let mut sorted: Vec<f64> = numbers.into_iter().collect();
        sorted.sort_by(f64::total_cmp);
        let middle = sorted.len() / 2;
        let median = match sorted.len() % 2 {
            0 => f64::midpoint(*sorted.get(middle.checked_sub(1)?)?, *sorted.get(middle)?),
            _ => *sorted.get(middle)?,
        };
        Some(Self { median, lowest: *sorted.first()?, highest: *sorted.last()? })
    }

    fn json(self) -> Value {
        json!([rounded(self.lowest), rounded(self.highest)])
    }

    fn shown(self) -> String {
        format!("{} ({} to {})", short(self.median), short(self.lowest), short(self.highest))
    }
}

/// One contender's blocks.
pub(super) struct Side {
    pub(super) name: &'static str,
    pub(super) cpu: Spread,
    pub(super) wall: Spread,
}

/// One row of the result.
pub(super) struct Row {
    pub(super) name: &'static str,
    pub(super) work: &'static str,
    pub(super) ours: Side,
    pub(super) peer: Side,
    pub(super) limit: Option<Side>,
    /// The peer's median over ours; the spread is that of the rounds.
    pub(super) ratio: Spread,
    pub(super) limit_ratio: Option<Spread>,
    pub(super) goal: Option<Goal>,
}

const UNIT: &str = "us of CPU";

impl Row {
    /// `rounds` holds, for each round, the costs in the order of the contenders. `None` without rounds.
    pub(super) fn of(contest: &Contest, rounds: &[Vec<Cost>]) -> Option<Self> {
        let column = |at: usize| rounds.iter().filter_map(move |round| round.get(at).copied());
        let side = |at: usize, name| {
            let (cpu, wall) = (column(at).map(|cost| cost.cpu), column(at).map(|cost| cost.wall));
            Some(Side { name, cpu: Spread::of(cpu)?, wall: Spread::of(wall)? })
        };
        let ours = side(0, contest.ours.name)?;
        let peer = side(1, contest.peer.name)?;
        let limit = contest.limit.as_ref().and_then(|limit| side(2, limit.name));
        let over_ours = |at: usize, other: &Side| {
            let each = column(at).zip(column(0)).map(|(other, ours)| other.cpu / ours.cpu);
            Some(Spread { median: other.cpu.median / ours.cpu.median, ..Spread::of(each)? })
        };
        let ratio = over_ours(1, &peer)?;
        let limit_ratio = limit.as_ref().and_then(|limit| over_ours(2, limit));
        let (name, work, goal) = (contest.name, contest.work, contest.goal);
        Some(Self { name, work, ours, peer, limit, ratio, limit_ratio, goal })
    }

    /// Whether the goal is met; `None` where there is none.
    pub(super) fn met(&self) -> Option<bool> {
        self.goal.map(|goal| {
            let limit = self.limit_ratio.map(|ratio| ratio.median);
            let enough = goal.limit_ratio.is_none_or(|least| limit.is_some_and(|found| found >= least));
            self.ratio.median >= goal.ratio && enough
        })
    }

    fn json(&self) -> Value {
        let number = |spread: Spread| rounded(spread.median);
        let limit = self.limit.as_ref();
        json!({
            "name": self.name,
            "unit": UNIT,
            "ours": number(self.ours.cpu),
            "peer": number(self.peer.cpu),
            "peer_name": self.peer.name,
            "ratio": number(self.ratio),
            "limit": limit.map(|limit| number(limit.cpu)),
            "limit_ratio": self.limit_ratio.map(number),
            "goal": self.goal.map(|goal| json!({"ratio": goal.ratio, "limit_ratio": goal.limit_ratio})),
            "met": self.met(),
            "ours_name": self.ours.name,
            "limit_name": limit.map(|limit| limit.name),
            "spread": {
                "ours": self.ours.cpu.json(), "peer": self.peer.cpu.json(),
                "limit": limit.map(|limit| limit.cpu.json()), "ratio": self.ratio.json(),
                "limit_ratio": self.limit_ratio.map(Spread::json),
            },
            "wall_us": {
                "ours": number(self.ours.wall), "peer": number(self.peer.wall),
                "limit": limit.map(|limit| number(limit.wall)),
            },
        })
    }

    /// The name of the goal, for people.
    fn goal(&self) -> String {
        match self.goal {
            None => "none".to_owned(),
            Some(Goal { ratio, limit_ratio: None }) => format!("≥ {ratio}x"),
            Some(Goal { ratio, limit_ratio: Some(limit) }) => {
                format!("≥ {ratio}x; ≥ {limit:.1} of the limit")
            }
        }
    }

    fn verdict(&self) -> &'static str {
        match self.met() {
            Some(true) => "met",
            Some(false) => "NOT met",
            None => "for orientation",
        }
    }
}

/// `{"rows": [...]}`.
pub(super) fn json(rows: &[Row]) -> Value {
    json!({"rows": rows.iter().map(Row::json).collect::<Vec<_>>()})
}

/// For a terminal.
pub(super) fn text(rows: &[Row]) -> String {
    let mut text = format!("{UNIT} a unit of work, median (lowest to highest); wall time in brackets\n");
    for row in rows {
        text.push_str(&format!("\n{}: {}\n", row.name, row.work));
        for (side, ratio) in [
            (Some(&row.ours), None),
            (Some(&row.peer), Some(row.ratio)),
            (row.limit.as_ref(), row.limit_ratio),
        ] {
            let Some(side) = side else { continue };
            let ratio = ratio.map_or(String::new(), |ratio| format!("  {}x", ratio.shown()));
            let (cpu, wall) = (side.cpu.shown(), short(side.wall.median));
            text.push_str(&format!("    {:<32} {cpu:<30} [{wall}]{ratio}\n", side.name));
        }
        text.push_str(&format!("    goal {}: {}\n", row.goal(), row.verdict()));
    }
    text
}

/// For `docs/measurements.md`.
pub(super) fn markdown(rows: &[Row]) -> String {
    let mut text =
        String::from("| row | who | CPU µs | wall µs | ratio | goal |\n|---|---|---|---|---|---|\n");
    for row in rows {
        let (name, goal) = (row.name, format!("{}: {}", row.goal(), row.verdict()));
        let mut line = |name: &str, side: &Side, ratio: String, goal: &str| {
            let (cpu, wall) = (side.cpu.shown(), short(side.wall.median));
            text.push_str(&format!("| {name} | {} | {cpu} | {wall} | {ratio} | {goal} |\n", side.name));
        };
        let times = |ratio: Spread| {
            format!("{}x ({} to {})", short(ratio.median), short(ratio.lowest), short(ratio.highest))
        };
        line(&format!("`{name}`"), &row.ours, String::new(), &goal);
        line("", &row.peer, times(row.ratio), "");
        if let (Some(limit), Some(ratio)) = (&row.limit, row.limit_ratio) {
            line("", limit, times(ratio), "");
        }
    }
    text
}

/// Three digits that count.
fn short(number: f64) -> String {
    match number {
        0.0..10.0 => format!("{number:.2}"),
        10.0..100.0 => format!("{number:.1}"),
        _ => format!("{number:.0}"),
    }
}

/// Enough digits for a machine.
fn rounded(number: f64) -> f64 {
    (number * 1000.0).round() / 1000.0
}

#[cfg(test)]
mod tests {
    use super::super::contest::ALL;
    use super::*;

    fn cost(cpu: f64) -> Cost {
        Cost { cpu, wall: cpu * 2.0 }
    }

    /// The row `accept`, from rounds of (ours, peer, limit).
    fn accept(rounds: &[[f64; 3]]) -> Row {
        let rounds: Vec<_> = rounds.iter().map(|round| round.map(cost).to_vec()).collect();
        Row::of(&ALL[0], &rounds).unwrap()
    }

    #[test]
    fn the_median_of_an_even_number_lies_between() {
        assert_eq!(Spread::of([3.0, 1.0, 2.0]), Some(Spread { median: 2.0, lowest: 1.0, highest: 3.0 }));
        assert_eq!(Spread::of([4.0, 1.0]), Some(Spread { median: 2.5, lowest: 1.0, highest: 4.0 }));
        assert_eq!(Spread::of([]), None);
    }

    #[test]
    fn a_ratio_is_that_of_the_medians_and_its_spread_that_of_the_rounds() {
        let row = accept(&[[10.0, 100.0, 20.0], [20.0, 100.0, 20.0], [10.0, 120.0, 20.0]]);
        assert_eq!(row.ratio, Spread { median: 10.0, lowest: 5.0, highest: 12.0 });
        assert_eq!(row.limit_ratio.map(|ratio| ratio.median), Some(2.0));
    }

    #[test]
    fn a_goal_is_met_at_its_boundary_and_needs_both_ratios() {
        assert_eq!(accept(&[[10.0, 50.0, 10.0]]).met(), Some(true));
        assert_eq!(accept(&[[10.0, 49.0, 10.0]]).met(), Some(false));
        assert_eq!(accept(&[[10.0, 50.0, 9.9]]).met(), Some(false));
        let orientation = Row::of(&ALL[1], &[vec![cost(1.0), cost(2.0)]]).unwrap();
        assert_eq!(orientation.met(), None);
        assert!(text(&[orientation]).contains("goal none: for orientation\n"));
    }

    #[test]
    fn the_json_has_the_promised_names() {
        let rows = json(&[accept(&[[10.0, 60.0, 20.0]])]);
        let row = &rows["rows"][0];
        for (name, value) in [
            ("name", json!("accept")),
            ("unit", json!(UNIT)),
            ("ours", json!(10.0)),
            ("peer", json!(60.0)),
            ("peer_name", json!("pydantic model and checks")),
            ("ratio", json!(6.0)),
            ("limit", json!(20.0)),
            ("limit_ratio", json!(2.0)),
            ("goal", json!({"ratio": 5.0, "limit_ratio": 1.0})),
            ("met", json!(true)),
        ] {
            assert_eq!(row[name], value, "{name}");
        }
    }

    #[test]
    fn a_missed_goal_is_told_to_people() {
        let row = accept(&[[10.0, 20.0, 20.0]]);
        assert!(text(std::slice::from_ref(&row)).contains("goal ≥ 5x; ≥ 1.0 of the limit: NOT met\n"));
        let page = markdown(&[row]);
        assert!(page.contains("| `accept` | Snapshot::accept | 10.0 (10.0 to 10.0) | 20.0 |"), "{page}");
        assert!(page.contains("| 2.00x (2.00 to 2.00) |"), "{page}");
    }
}
