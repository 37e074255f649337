//! Non-negative least squares by coordinate descent: a few coefficients for each part of a system
//! (Lawson and Hanson, Solving Least Squares Problems, chapter 23, states the problem).

/// More rounds than any of these small problems needs to converge.
const ROUNDS_MAX: usize = 20_000;
const ENOUGH: f64 = 1e-12;

/// Returns the non-negative coefficients with the smallest squared error over the rows.
pub fn fit<const N: usize>(rows: &[([f64; N], f64)]) -> [f64; N] {
    let mut coefficients = [0.0; N];

    // Normalizes the columns, so that the steps are comparable.
    let scale: [f64; N] = std::array::from_fn(|column| {
        let squares: f64 = rows.iter().map(|(row, _)| row[column] * row[column]).sum();
        squares.sqrt()
    });
    for _ in 0..ROUNDS_MAX {
        let mut moved = 0.0_f64;
        for column in (0..N).filter(|column| scale[*column] > 0.0) {
            let step = rows
                .iter()
                .map(|(row, value)| row[column] * (value - dot(&coefficients, row)))
                .sum::<f64>()
                / (scale[column] * scale[column]);

            let next = (coefficients[column] + step).max(0.0);
            moved = moved.max((next - coefficients[column]).abs() * scale[column]);
            coefficients[column] = next;
        }

        if moved < ENOUGH {
            break;
        }
    }

    coefficients
}

pub fn dot<const N: usize>(coefficients: &[f64; N], row: &[f64; N]) -> f64 {
    coefficients.iter().zip(row).map(|(coefficient, value)| coefficient * value).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_made_the_values_is_found_again() {
        let true_ones = [0.05, 0.0004, 0.0, 0.002];
        let rows: Vec<([f64; 4], f64)> = (0..60)
            .map(|number| {
                let row = [
                    1.0,
                    100.0 + f64::from(number * 37 % 11) * 90.0,
                    f64::from(number % 7),
                    f64::from(number % 5),
                ];
                (row, dot(&true_ones, &row))
            })
            .collect();

        let found = fit(&rows);
        for (found, right) in found.iter().zip(true_ones) {
            assert!((found - right).abs() < 1e-4, "{found} is not {right}");
        }
    }

    #[test]
    fn nothing_costs_less_than_nothing() {
        let rows: Vec<([f64; 2], f64)> =
            (1..10).map(|x| ([1.0, f64::from(x)], 10.0 - f64::from(x))).collect();
        let [base, slope] = fit(&rows);
        assert!(slope == 0.0 && (base - 5.0).abs() < 1e-6, "{base} and {slope}");
        assert_eq!(fit::<2>(&[]), [0.0, 0.0]);
    }
}
